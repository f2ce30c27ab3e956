//! Style sheet and script of the pages. They consist of those of the reports, and additions.

use plimsoll_report::html;

use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::site::Site;

const CSS: &str = include_str!("site.css");
const JS: &str = include_str!("site.js");

/// Returns the style sheet.
///
/// # Errors
/// None.
pub fn style(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Asset("text/css; charset=utf-8", format!("{}\n{CSS}", html::css())))
}

/// Returns the script. The pages contain all information without the script, too.
///
/// # Errors
/// None.
pub fn script(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Asset("text/javascript; charset=utf-8", format!("{}\n{JS}", html::js())))
}
