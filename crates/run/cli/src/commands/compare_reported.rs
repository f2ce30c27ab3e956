//! `plimsoll compare BEFORE AFTER` for results of other tools: files, directories or archives.

use std::path::{Path, PathBuf};

use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_judge::conservation::repeats::{Difference, Sides, compare};
use plimsoll_judge::conservation::{Audit, DeclaredFacts, audit};
use plimsoll_report::{reported, text};
use plimsoll_runner::audit as runner;

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Returns true if a path exists and contains no bundles: a file, archive or directory of results.
pub fn is_foreign(path: &str) -> bool {
    let path = Path::new(path);
    path.is_file() || path.is_dir() && !holds_bundles(path, 3)
}

/// Returns true if the directory, or a subdirectory at most `depth` levels down, contains a bundle.
fn holds_bundles(directory: &Path, depth: usize) -> bool {
    let marks = ["run.json", "experiment.json", "all/fleet.json"];
    if marks.iter().any(|mark| directory.join(mark).is_file()) {
        return true;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    depth > 0
        && entries
            .map(|entry| entry.path())
            .any(|path| path.is_dir() && holds_bundles(&path, depth - 1))
}

/// Compares the two sides.
///
/// # Errors
/// A side of the comparison contains no results, or the output cannot be written.
pub fn carry_out(
    named: [(Option<&str>, &str); 2],
    html: Option<&Path>,
    common: &Globals,
) -> Result<Exit, CliError> {
    let side = |path: &str| -> Result<_, CliError> {
        let paths = [PathBuf::from(path)];
        let study = runner::study(&paths)?;
        if study.results.is_empty() {
            return Err(runner::no_result_error(&paths, &study));
        }
        Ok(study)
    };
    let studies = [side(named[0].1)?, side(named[1].1)?];
    let judged = [0, 1].map(|index: usize| {
        let results = studies[index].results.iter();
        results
            .map(|result| (result, audit(result, &DeclaredFacts::default())))
            .collect::<Vec<(&ToolResult, Audit)>>()
    });
    let sides = compare([&judged[0], &judged[1]]);
    let names = named.map(|(name, path)| name.unwrap_or(path));
    let document = reported::sides_document(names, &sides);
    if let Some(path) = html {
        super::audit::write(path, &bundle::document_html(&document)?)?;
    }
    bundle::print(&match common.json {
        true => bundle::json(&reported::sides_json(names, &sides))?,
        false => text::document(&document, &bundle::style(common)),
    })?;
    Ok(exit_of(&sides))
}

/// Returns the exit code. It is 3 (no verdict) if the sides of the comparison have no figure in
/// common, or if a result is impossible.
fn exit_of(sides: &Sides) -> Exit {
    let mut pairs = sides.rows.iter().flat_map(|row| &row.pairs).peekable();
    let told = pairs.peek().is_some() && pairs.all(|pair| pair.says != Difference::Impossible);
    if told { Exit::Ok } else { Exit::NoVerdict }
}
