//! `plimsoll fleet status` and `drain`: lists agents and drains them.

use plimsoll_fleet::coordinator::{self, AgentStatus};
use plimsoll_report::hosts::{HostRow, hosts_table};
use plimsoll_report::text;
use plimsoll_serve::FindHosts;
use serde_json::json;

use super::FleetArgument;
use crate::commands::access::reached;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys::Sign;

/// Lists the agents.
pub fn status(of: &FleetArgument, common: &Globals) -> Result<Exit, CliError> {
    let (server, _) = reached(&of.fleet, &Sign::default())?;
    let seen = coordinator::status(&server)?;
    if common.json {
        bundle::print(&bundle::json(&seen)?)?;
        return Ok(Exit::Ok);
    }
    if seen.is_empty() {
        bundle::print("no agent is connected; start `plimsoll agent` on each host\n")?;
        return Ok(Exit::Ok);
    }
    let rows = seen.into_iter().map(row);
    bundle::print(&text::grid(&hosts_table(rows), &bundle::style(common)))?;
    Ok(Exit::Ok)
}

/// Converts the state of an agent to a table row.
fn row(one: AgentStatus) -> HostRow {
    HostRow {
        name: one.card.name,
        host: one.card.host,
        address: one.card.address,
        version: one.card.version,
        is_own_build: one.is_own_build,
        cpus: one.card.cpus,
        clock_error_ns: one.clock.map(|clock| clock.error_ns),
        time_of_day_ns: one.time_of_day_ns,
        busy_with: one.card.busy_with,
        is_drained: one.is_drained,
        labels: one.card.labels,
        allows: one.card.allows,
    }
}

/// Returns a function that lists the hosts of a fleet each time it is called.
///
/// # Errors
/// The file cannot be read.
pub fn hosts(fleet: &str) -> Result<FindHosts, CliError> {
    let (server, _) = reached(fleet, &Sign::default())?;
    Ok(Box::new(move || {
        let seen = coordinator::status(&server).map_err(|error| error.message)?;
        Ok(seen.into_iter().map(row).collect())
    }))
}

/// Drains the given agents, or all agents if no names are given. With `undo`, stops draining them.
///
/// # Errors
/// The server cannot be reached, or an agent is not connected.
pub fn drain(
    of: &FleetArgument,
    agents: &[String],
    undo: bool,
    common: &Globals,
) -> Result<Exit, CliError> {
    let (server, _) = reached(&of.fleet, &Sign::default())?;
    let there = coordinator::status(&server)?.into_iter().map(|one| one.card.name);
    let there: Vec<String> = there.collect();
    let agents = if agents.is_empty() { &there[..] } else { agents };
    if let Some(name) = agents.iter().find(|name| !there.contains(name)) {
        return Err(CliError::usage(format!("no agent named {name} is connected"))
            .hint("`plimsoll fleet status` lists the connected agents"));
    }
    coordinator::drain(&server, agents, undo)?;
    let (word, said) = match undo {
        true => ("taken_in", "accepts new runs again"),
        false => ("left_out", "draining: finishes its current run, accepts no new ones"),
    };
    match common.json {
        true => bundle::print(&bundle::json(&json!({ word: agents }))?)?,
        false => bundle::print(&format!("{}: {said}\n", agents.join(", ")))?,
    }
    Ok(Exit::Ok)
}
