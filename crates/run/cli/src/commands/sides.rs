//! Finds the sides of a comparison, and prints the comparison. Also prints which evidence of the
//! sides is not confirmed.

use plimsoll_judge::compare::{Comparison, Outcome};
use plimsoll_report::{comparison_document, text};
use plimsoll_runner::compare::{NamedSide, parse_side};

use super::bundle;
use crate::common::Globals;
use crate::custody::RunSet;
use crate::error::CliError;
use crate::exit::Exit;

/// Finds the sides of the comparison that the command line lists.
///
/// # Errors
/// A side of the comparison does not exist.
pub fn find(sides: &[String]) -> Result<Vec<NamedSide>, CliError> {
    let one = |side: &String| {
        let (name, argument) = parse_side(side);
        let directory = bundle::find(argument)?;
        Ok(NamedSide { name: name.map(str::to_owned), argument: argument.to_owned(), directory })
    };
    sides.iter().map(one).collect()
}

/// Prints which evidence of the sides of the comparison is not confirmed.
///
/// # Errors
/// Stdout cannot be written.
pub fn print_doubts(sides: &[RunSet], common: &Globals) -> Result<(), CliError> {
    let mut lines: Vec<String> = Vec::new();
    for line in sides.iter().flat_map(RunSet::lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    bundle::print_custody(&lines, common)
}

/// Returns the exit code. A difference between the sides of the comparison does not affect it.
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
/// Stdout cannot be written.
pub fn show(compared: &Comparison, common: &Globals) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(compared)?);
    }
    bundle::print(&text::document(&comparison_document(compared), &bundle::style(common)))
}
