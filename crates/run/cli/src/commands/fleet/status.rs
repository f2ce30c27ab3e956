//! `plimsoll fleet status`, `drain` and `check`: lists agents, drains them, checks them for a plan.

use plimsoll_fleet::coordinator::{self, AgentStatus, Options};
use plimsoll_plan::Plan;
use plimsoll_report::hosts::{AcceptanceRow, HostRow, acceptance_table, hosts_table};
use plimsoll_report::text;
use plimsoll_serve::FindHosts;
use serde_json::json;

use super::FleetArgument;
use crate::commands::access::{Access, reached};
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys::Sign;
use crate::notes;

/// Lists the agents.
pub fn status(of: &FleetArgument, common: &Globals) -> Result<Exit, CliError> {
    let (server, _) = reached(&of.fleet, &of.access, &Sign::default())?;
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

/// Converts an agent to a row.
fn row(one: AgentStatus) -> HostRow {
    HostRow {
        name: one.card.name,
        host: one.card.host,
        address: one.card.address,
        version: one.card.version,
        is_own_build: one.is_own_build,
        cpus: one.card.cpus,
        clock_error_ns: one.clock.map(|clock| clock.error_ns),
        busy_with: one.card.busy_with,
        is_drained: one.is_drained,
        labels: one.card.labels,
        allows: one.card.allows,
    }
}

/// Returns a function that lists the hosts of a fleet repeatedly.
///
/// # Errors
/// An unreadable file.
pub fn hosts(fleet: &str) -> Result<FindHosts, CliError> {
    let (server, _) = reached(fleet, &Access::default(), &Sign::default())?;
    Ok(Box::new(move || {
        let seen = coordinator::status(&server).map_err(|error| error.message)?;
        Ok(seen.into_iter().map(row).collect())
    }))
}

/// Drains agents, or all if none is named, or undoes that.
///
/// # Errors
/// An unreachable server, or an unknown agent.
pub fn drain(
    of: &FleetArgument,
    agents: &[String],
    undo: bool,
    common: &Globals,
) -> Result<Exit, CliError> {
    let (server, _) = reached(&of.fleet, &of.access, &Sign::default())?;
    let there = coordinator::status(&server)?.into_iter().map(|one| one.card.name);
    let there: Vec<String> = there.collect();
    let agents = if agents.is_empty() { &there[..] } else { agents };
    coordinator::drain(&server, agents, undo)?;
    for name in agents.iter().filter(|name| !there.contains(name)) {
        notes::tell(&format!("warning: no agent named {name} is connected"));
    }
    let (word, said) = match undo {
        true => ("taken_in", "accepts runs again"),
        false => ("left_out", "draining: finishes its current run, accepts no new ones"),
    };
    match common.json {
        true => bundle::print(&bundle::json(&json!({ word: agents }))?)?,
        false => bundle::print(&format!("{}: {said}\n", agents.join(", ")))?,
    }
    Ok(Exit::Ok)
}

/// Shows which agents would accept a plan.
///
/// # Errors
/// An invalid plan, or an unreachable server.
pub fn check(of: &FleetArgument, plan: &Plan, common: &Globals) -> Result<Exit, CliError> {
    let (server, places) = reached(&of.fleet, &of.access, &of.sign)?;
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
