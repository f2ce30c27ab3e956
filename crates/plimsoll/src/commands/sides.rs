//! Sides of a comparison: how they are read, and what is said of them.

use std::path::Path;

use plimsoll_judge::compare::{Comparison, Outcome};
use plimsoll_report::{comparison_document, text};

use super::bundle;
use crate::common::Common;
use crate::custody::{Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;

/// Reads the runs of a side, and refuses evidence that does not agree with itself.
///
/// # Errors
/// A directory without bundles, or with one that can't be relied on.
pub fn read_side(reader: &Reader, directory: &Path) -> Result<Together, CliError> {
    let together = reader.load_all(directory)?;
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
        Outcome::UnlikeConditions | Outcome::NotBelieved => Exit::NoVerdict,
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
