//! `plimsoll compare SWEEP_A SWEEP_B`: compares two sweeps cell by cell.

use std::path::Path;

use plimsoll_judge::compare::{Outcome, SweepComparison};
use plimsoll_report::{sweeps_document, text};

use super::bundle;
use super::sides::print_doubts;
use crate::common::Globals;
use crate::custody::RunSet;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows a comparison of sweeps, writes its HTML page, and returns the exit code.
///
/// # Errors
/// The page or stdout cannot be written.
pub fn show_comparison(
    (compared, read): &(SweepComparison, Vec<RunSet>),
    html: Option<&Path>,
    common: &Globals,
) -> Result<Exit, CliError> {
    let document = sweeps_document(compared);
    if let Some(path) = html {
        super::audit::write(path, &bundle::document_html(&document)?)?;
    }
    if common.json {
        bundle::print(&bundle::json(compared)?)?;
    } else {
        bundle::print(&text::document(&document, &bundle::style(common)))?;
    }
    print_doubts(read, common)?;
    let exit = match compared.outcome {
        Outcome::UnlikeConditions | Outcome::NotShown => Exit::NoVerdict,
        _ if compared.cells.is_empty() => Exit::NoVerdict,
        _ => Exit::Ok,
    };
    Ok(read.iter().fold(exit, |exit, side| side.apply_doubts(exit)))
}
