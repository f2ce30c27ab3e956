//! Judges results in any known format, and shows one result in detail or several results as rows.

use std::path::{Path, PathBuf};

use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_import::Study;
use plimsoll_judge::conservation::study::audits;
use plimsoll_judge::conservation::{Audit, Credibility, DeclaredFacts, audit};
use plimsoll_report::document::Document;
use plimsoll_report::{reported, text};
use plimsoll_runner::audit as runner;
use serde_json::json;

use super::super::bundle;
use super::Options;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges all results in the given paths.
///
/// # Errors
/// A path is missing, or contains no results.
pub fn carry_out(
    paths: &[PathBuf],
    declared: &DeclaredFacts,
    options: &Options,
    common: &Globals,
) -> Result<Exit, CliError> {
    let study = runner::study(paths)?;
    if study.results.is_empty() {
        return Err(runner::no_result_error(paths, &study));
    }
    show_study(&study, declared, options, common)
}

/// Shows one result in detail, or several results as rows.
///
/// # Errors
/// The output cannot be written.
pub fn show_study(
    study: &Study,
    declared: &DeclaredFacts,
    options: &Options,
    common: &Globals,
) -> Result<Exit, CliError> {
    if let ([only], [], false) = (&study.results[..], &study.unreadable[..], options.table) {
        return one(only, declared, options, common);
    }
    let results: Vec<&ToolResult> = study.results.iter().collect();
    let audits = audits(&results, declared);
    let mut judged: Vec<(&ToolResult, Audit)> = results.into_iter().zip(audits).collect();
    options.sort.apply(&mut judged);
    let unreadable: Vec<String> = study.unreadable.iter().map(ToString::to_string).collect();
    let document = reported::study_document(&judged, &unreadable, study.passed_over);
    write_rows(&judged, options)?;
    if common.json {
        let rows: Vec<_> =
            judged.iter().map(|(result, audit)| reported::result_json(result, audit)).collect();
        bundle::print(&bundle::json(&json!({
            "results": rows,
            "unreadable": unreadable,
            "passed_over": study.passed_over,
        }))?)?;
        page(&document, options)?;
    } else {
        show(&document, options, common)?;
    }
    let sound = judged.iter().all(|(_, audit)| audit.verdict == Credibility::Consistent);
    Ok(if sound && study.unreadable.is_empty() { Exit::Ok } else { Exit::NoVerdict })
}

/// Judges one result, in detail.
///
/// # Errors
/// The output cannot be written.
pub fn one(
    result: &ToolResult,
    declared: &DeclaredFacts,
    options: &Options,
    common: &Globals,
) -> Result<Exit, CliError> {
    let judged = [(result, audit(result, declared))];
    let (result, audit) = &judged[0];
    write_rows(&judged, options)?;
    let document = reported::result_document(result, audit);
    if common.json {
        bundle::print(&bundle::json(&reported::result_json(result, audit))?)?;
        page(&document, options)?;
    } else {
        show(&document, options, common)?;
    }
    let sound = audit.verdict == Credibility::Consistent;
    Ok(if sound { Exit::Ok } else { Exit::NoVerdict })
}

/// Writes the CSV that `--csv` requests.
///
/// # Errors
/// The file cannot be written.
pub fn write_rows(judged: &[(&ToolResult, Audit)], options: &Options) -> Result<(), CliError> {
    match &options.csv {
        Some(path) => write(path, &reported::study_table(judged).csv()),
        None => Ok(()),
    }
}

fn show(document: &Document, options: &Options, common: &Globals) -> Result<(), CliError> {
    bundle::print(&text::document(document, &bundle::style(common)))?;
    page(document, options)
}

fn page(document: &Document, options: &Options) -> Result<(), CliError> {
    match &options.html {
        Some(path) => write(path, &bundle::document_html(document)?),
        None => Ok(()),
    }
}

/// Writes a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text)
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
}
