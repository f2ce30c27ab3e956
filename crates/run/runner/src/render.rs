//! Renders reports as pages, and values as JSON.

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_report::document::Document;
use serde::Serialize;

use crate::error::RunnerError;
use crate::exit::Exit;

/// Renders the report of a run as a page.
///
/// # Errors
/// The template has a defect.
pub fn html(bundle: &Bundle, verdict: &Verdict) -> Result<String, RunnerError> {
    plimsoll_report::html(bundle, verdict).map_err(|error| {
        RunnerError::new(Exit::Defect, format!("cannot render the report: {error}"))
    })
}

/// Renders any other report as a page.
///
/// # Errors
/// The template has a defect.
pub fn document_html(document: &Document) -> Result<String, RunnerError> {
    let footer = format!("Plimsoll {}", env!("CARGO_PKG_VERSION"));
    plimsoll_report::html::page(document, &footer).map_err(|error| {
        RunnerError::new(Exit::Defect, format!("cannot render the report: {error}"))
    })
}

/// Renders a value as indented JSON with a line feed.
///
/// # Errors
/// The value has no JSON form.
pub fn json(value: &impl Serialize) -> Result<String, RunnerError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| RunnerError::new(Exit::Defect, format!("cannot write JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}
