//! What several commands do with bundles: find one, judge it, show the verdict.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_judge::{Verdict, carried};
use plimsoll_report::text::Style;
pub use plimsoll_runner::render::{document_html, html, json};
use serde::Serialize;

use crate::catalogue;
use crate::common::{self, Common};
use crate::error::CliError;
use crate::notes;
use crate::places::Places;

/// Columns of a report that does not go to a terminal.
const COLUMNS: usize = 100;

/// The bundle's directory: a path, or what a run of the catalogue is called.
///
/// # Errors
/// Neither is there.
pub fn find(name: &str) -> Result<PathBuf, CliError> {
    let path = Path::new(name);
    if path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let places = Places::from_environment()?;
    // What is named in full is found without the index.
    if !name.contains('/')
        && let Some(catalogued) = catalogued(&places.runs, name)
    {
        return Ok(catalogued);
    }
    if name.contains('/') {
        return Err(CliError::usage(format!("there is no bundle {name}"))
            .hint("name a bundle's directory, or a run as `plimsoll runs` lists them"));
    }
    catalogue::find(&places, name)
}

/// The directory of a run or experiment of the catalogue: at its top, or within an experiment.
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
/// Stdout that cannot be written.
pub fn show(
    directory: &Path,
    bundle: &Bundle,
    verdict: &Verdict,
    common: &Common,
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
        text.push_str(&format!("\nreport: there is none; `plimsoll judge {again}` makes it\n"));
    }
    print(&text)
}

/// The object of `verdict.json`; a quickstart's has beside it what the storage would carry.
///
/// # Errors
/// A value that has no JSON form.
pub fn verdict_json(bundle: &Bundle, verdict: &Verdict) -> Result<String, CliError> {
    #[derive(Serialize)]
    struct Answered<'a> {
        #[serde(flatten)]
        verdict: &'a Verdict,
        would_carry: &'a carried::Answer,
    }
    match carried::answer(bundle, verdict) {
        Some(would_carry) => json(&Answered { verdict, would_carry: &would_carry }),
        None => json(verdict),
    }
}

/// Says what is in doubt of the evidence that was shown: below a report that people read, and on stderr
/// beside what programs read.
///
/// # Errors
/// Stdout that cannot be written.
pub fn print_custody(lines: &[String], common: &Common) -> Result<(), CliError> {
    if common.json {
        lines.iter().for_each(|line| notes::tell(&format!("evidence: {line}")));
        return Ok(());
    }
    let text: String = lines.iter().map(|line| format!("evidence: {line}\n")).collect();
    print(&text)
}

/// How text is laid out: as wide as the terminal, coloured only when wanted.
pub fn style(common: &Common) -> Style {
    let terminal = std::io::stdout().is_terminal();
    let wanted = common::colour(common, terminal);
    let columns = terminal
        .then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok())
        .flatten()
        .map_or(COLUMNS, |size| usize::from(size.ws_col));
    Style { colour: wanted, width: columns, ..Style::default() }
}

/// Prints text to stdout. Where it can't be written, what is under way goes on, and the command ends with
/// code 5 ([`notes::write_result`]).
///
/// # Errors
/// None: whatever is to be done after it is done.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

/// As [`print()`].
///
/// # Errors
/// None.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    notes::write_result(bytes);
    Ok(())
}
