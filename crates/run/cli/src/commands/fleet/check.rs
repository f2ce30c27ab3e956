//! `plimsoll fleet check`: asks each agent whether it would accept a plan.

use plimsoll_fleet::coordinator::{self, Options};
use plimsoll_plan::Plan;
use plimsoll_report::hosts::{AcceptanceRow, acceptance_table};
use plimsoll_report::text;

use super::FleetArgument;
use crate::commands::access::reached;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys::Sign;

/// Shows which agents would accept a plan.
///
/// # Errors
/// The plan is invalid, or the server cannot be reached.
pub fn check(
    of: &FleetArgument,
    sign: &Sign,
    plan: &Plan,
    common: &Globals,
) -> Result<Exit, CliError> {
    let (server, places) = reached(&of.fleet, sign)?;
    let bundles = places.runs.clone();
    let would = coordinator::check_acceptance(
        plan,
        &Options { server, agents: None, names: Vec::new(), places, bundles },
    )?;
    let all = !would.is_empty() && would.iter().all(|one| one.takes);
    if common.json {
        bundle::print(&bundle::json(&would)?)?;
    } else if would.is_empty() {
        bundle::print("no agent is connected; start `plimsoll agent` on each host\n")?;
    } else {
        let rows = would.into_iter().map(|one| AcceptanceRow {
            name: one.name,
            takes: one.takes,
            says: one.reason,
            carries: one.carries,
        });
        bundle::print(&text::grid(&acceptance_table(rows), &bundle::style(common)))?;
    }
    Ok(if all { Exit::Ok } else { Exit::Fail })
}
