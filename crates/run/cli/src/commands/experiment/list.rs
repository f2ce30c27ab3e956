//! `plimsoll experiment list`.

use plimsoll_experiments::report::{ExperimentSummary, list_document};
use plimsoll_experiments::{Definition, shipped};

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Lists the experiments.
pub fn carry_out(common: &Globals) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    for files in shipped() {
        all.push(ExperimentSummary::new(&Definition::read(files)?)?);
    }
    if common.json {
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    let document = list_document(&all);
    bundle::print(&plimsoll_report::text::document(&document, &bundle::style(common)))?;
    Ok(Exit::Ok)
}
