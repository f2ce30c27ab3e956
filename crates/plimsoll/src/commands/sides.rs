//! Sides of a comparison: how they are read, and what is said of them.

use std::path::{Path, PathBuf};

use plimsoll_judge::compare::{Comparison, Outcome};
use plimsoll_report::{comparison_document, text};

use super::bundle;
use crate::common::Common;
use crate::custody::{Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;

/// Differences that no winner is withheld for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken<'a> {
    /// They were accepted.
    pub accept: &'a [String],
    /// They are what is asked about.
    pub factors: &'a [String],
}

/// The directories within one that are bundles' own places: experiments, or directories with bundles in them.
pub fn holding_bundles(directory: &Path) -> Vec<PathBuf> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let is_bundle = |path: &PathBuf| path.join("run.json").is_file();
    let holds = |path: &PathBuf| !is_bundle(path) && directories(path).iter().any(is_bundle);
    directories(directory).into_iter().filter(holds).collect()
}

/// Reads the runs of a side, and refuses evidence that does not agree with itself. A directory of experiments is
/// all of their runs.
///
/// # Errors
/// A directory without bundles, or with one that can't be relied on.
pub fn read_side(reader: &Reader, directory: &Path) -> Result<Together, CliError> {
    let mut together = reader.load_any(directory)?;
    if together.runs.is_empty() {
        for within in holding_bundles(directory) {
            let more = reader.load_all(&within)?;
            together.runs.extend(more.runs);
            together.doubts.extend(more.doubts);
            together.remarks.extend(more.remarks);
        }
        together.runs.sort_by_key(|run| run.bundle.run.started_unix_ns);
    }
    if together.runs.is_empty() {
        // It says what a side has to be.
        return reader.load_all(directory);
    }
    together.refuse_contradictions()?;
    Ok(together)
}

/// Says what is in doubt of the sides.
///
/// # Errors
/// Stdout that cannot be written.
pub fn tell_custody(sides: &[Together], common: &Common) -> Result<(), CliError> {
    let mut lines: Vec<String> = Vec::new();
    for line in sides.iter().flat_map(Together::lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    bundle::print_custody(&lines, common)
}

/// What a comparison ends with: nothing is wrong with sides that differ, or that do not.
pub fn exit_of(compared: &Comparison) -> Exit {
    match compared.outcome {
        Outcome::UnlikeConditions | Outcome::NotBelieved | Outcome::NotShown => Exit::NoVerdict,
        Outcome::NoneMeets => Exit::Fail,
        _ => Exit::Ok,
    }
}

/// Shows a comparison.
///
/// # Errors
/// Stdout that cannot be written.
pub fn show(compared: &Comparison, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(compared)?);
    }
    bundle::print(&text::document(&comparison_document(compared), &bundle::style(common)))
}
