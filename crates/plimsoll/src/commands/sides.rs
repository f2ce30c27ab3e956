//! Sides of a comparison: how they are found, and what is said of them.

use plimsoll_judge::compare::{Comparison, Outcome};
use plimsoll_report::{comparison_document, text};
use plimsoll_runner::compare::{NamedSide, parse_side};

use super::bundle;
use crate::common::Common;
use crate::custody::RunSet;
use crate::error::CliError;
use crate::exit::Exit;

/// The sides that a command line names, found.
///
/// # Errors
/// One that is not there.
pub fn given(sides: &[String]) -> Result<Vec<NamedSide>, CliError> {
    let one = |side: &String| {
        let (name, argument) = parse_side(side);
        let directory = bundle::find(argument)?;
        Ok(NamedSide { name: name.map(str::to_owned), argument: argument.to_owned(), directory })
    };
    sides.iter().map(one).collect()
}

/// Says what is in doubt of the sides.
///
/// # Errors
/// Stdout that cannot be written.
pub fn tell_custody(sides: &[RunSet], common: &Common) -> Result<(), CliError> {
    let mut lines: Vec<String> = Vec::new();
    for line in sides.iter().flat_map(RunSet::lines) {
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
