//! Style and script: those of reports, and what the pages around them add.

use plimsoll_report::html;

use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::site::Site;

const CSS: &str = include_str!("site.css");
const JS: &str = include_str!("site.js");

/// The style sheet.
///
/// # Errors
/// None.
pub fn style(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Asset("text/css; charset=utf-8", format!("{}\n{CSS}", html::css())))
}

/// The script. Every page is complete without it.
///
/// # Errors
/// None.
pub fn script(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Asset("text/javascript; charset=utf-8", format!("{}\n{JS}", html::js())))
}
