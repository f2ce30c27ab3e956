//! Functions for bundles that several commands use: find, judge, show.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_judge::{Verdict, mailbox_capacity};
use plimsoll_report::text::Style;
pub use plimsoll_runner::render::{document_html, html, json};
use serde::Serialize;

use crate::catalogue;
use crate::common::{self, Globals};
use crate::error::CliError;
use crate::notes;
use crate::places::Places;

/// Width of a report if the output is not a terminal.
const COLUMNS: usize = 100;

/// Returns the directory of a bundle. `name` is a path or the name of a run.
///
/// # Errors
/// There is no such path and no such run.
pub fn find(name: &str) -> Result<PathBuf, CliError> {
    let path = Path::new(name);
    if path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let places = Places::from_environment()?;
    // If the name is complete, the index is not needed.
    if !name.contains('/')
        && let Some(catalogued) = catalogued(&places.runs, name)
    {
        return Ok(catalogued);
    }
    if name.contains('/') {
        return Err(CliError::usage(format!("no bundle {name}"))
            .hint("use the directory of a bundle, or a run from `plimsoll runs`"));
    }
    catalogue::find(&places, name)
}

/// Returns the directory of a run or experiment in the catalogue, or of a run in an experiment.
pub fn catalogued(runs: &Path, name: &str) -> Option<PathBuf> {
    let top = runs.join(name);
    if top.is_dir() {
        return Some(top);
    }
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(name)).find(|path| path.is_dir())
}

/// Prints the verdict: as JSON, or as a table with the path of the report.
///
/// # Errors
/// Stdout cannot be written.
pub fn show(
    directory: &Path,
    bundle: &Bundle,
    verdict: &Verdict,
    common: &Globals,
) -> Result<(), CliError> {
    if common.json {
        return print(&verdict_json(bundle, verdict)?);
    }
    let mut text = plimsoll_report::text(bundle, verdict, &style(common));
    let report = directory.join("report.html");
    if report.is_file() {
        text.push_str(&format!("\nreport: {}\n", report.display()));
    } else {
        let again = directory.display();
        text.push_str(&format!("\nreport: none; `plimsoll judge {again}` creates it\n"));
    }
    print(&text)
}

/// Returns the contents of `verdict.json`. A quickstart adds the estimated number of mailboxes.
///
/// # Errors
/// A value cannot be converted to JSON.
pub fn verdict_json(bundle: &Bundle, verdict: &Verdict) -> Result<String, CliError> {
    #[derive(Serialize)]
    struct Answered<'a> {
        #[serde(flatten)]
        verdict: &'a Verdict,
        would_carry: &'a mailbox_capacity::MailboxEstimate,
    }
    match mailbox_capacity::estimate(bundle, verdict) {
        Some(would_carry) => json(&Answered { verdict, would_carry: &would_carry }),
        None => json(verdict),
    }
}

/// Prints which evidence is not confirmed or was not checked: on stderr with --json.
///
/// # Errors
/// Stdout that cannot be written.
pub fn print_custody(lines: &[String], common: &Globals) -> Result<(), CliError> {
    if common.json {
        lines.iter().for_each(|line| notes::tell(&format!("evidence: {line}")));
        return Ok(());
    }
    let text: String = lines.iter().map(|line| format!("evidence: {line}\n")).collect();
    print(&text)
}

/// Returns the style of text output: the width of the terminal, and whether colour is enabled.
pub fn style(common: &Globals) -> Style {
    let terminal = std::io::stdout().is_terminal();
    let required = common::colour(common, terminal);
    let size = terminal.then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok()).flatten();
    // A serial console may report a width of 0.
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { COLUMNS } else { columns };
    Style { colour: required, width, ..Style::default() }
}

/// Prints text to stdout. If this fails, the command continues and ends with code 5
/// ([`notes::write_result`]).
///
/// # Errors
/// This function never fails: the command finishes its work first.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(notes::without_control(text).as_bytes())
}

/// Like [`print()`], for bytes.
///
/// # Errors
/// None.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    notes::write_result(bytes);
    Ok(())
}
