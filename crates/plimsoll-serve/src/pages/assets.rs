//! Style and script: those of reports, and what the pages around them add.

use plimsoll_report::html;

use crate::answer::{Answer, Problem};
use crate::ask::Ask;
use crate::site::Site;

const CSS: &str = include_str!("site.css");
const JS: &str = include_str!("site.js");

/// The style sheet.
///
/// # Errors
/// None.
pub fn style(_: &Site, _: &Ask) -> Result<Answer, Problem> {
    Ok(Answer::Asset("text/css; charset=utf-8", format!("{}\n{CSS}", html::css())))
}

/// The script. Every page is complete without it.
///
/// # Errors
/// None.
pub fn script(_: &Site, _: &Ask) -> Result<Answer, Problem> {
    Ok(Answer::Asset("text/javascript; charset=utf-8", format!("{}\n{JS}", html::js())))
}
