//! `plimsoll plan show`: prints a plan.

use plimsoll_plan::Plan;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the text of a plan, or the plan with every default filled in as JSON.
///
/// # Errors
/// The plan has no JSON form.
pub fn show(plan: &Plan, common: &Globals) -> Result<Exit, CliError> {
    if common.json {
        let plan = plan.check().map_err(|error| CliError::usage(error.to_string()))?;
        bundle::print(&bundle::json(&plan)?)?;
    } else {
        bundle::print(plan.text())?;
    }
    Ok(Exit::Ok)
}
