//! Who carries several plans out, one after the other: the arms of an experiment, the stages of a job.

use std::sync::atomic::AtomicBool;

use plimsoll_fleet::coordinator;
use plimsoll_plan::ResolvedPlan;

use super::load_hosts::{Carried, LoadHosts};
use crate::error::CliError;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// A plan among several: what it is called there, and as it is run.
pub type Named<'a> = (&'a str, &'a ResolvedPlan);

/// Chooses who carries all of them out.
///
/// # Errors
/// None of them, one that a fleet can't carry, too few agents, a server that can't be reached.
pub fn for_all(
    plans: &[Named<'_>],
    hosts: &LoadHosts,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Carried, CliError> {
    let Some((_, first)) = plans.first() else {
        return Err(CliError::usage("there is nothing to run"));
    };
    for (name, resolved) in plans.iter().filter(|_| hosts.is_asked_for()) {
        coordinator::check(resolved).map_err(|error| error.hint(format!("this is {name}")))?;
    }
    // Agents of a fleet of this host alone are allowed the places of all.
    let targets = plans.iter().flat_map(|(_, resolved)| resolved.targets.clone()).collect();
    let whole = ResolvedPlan { targets, ..(*first).clone() };
    hosts.carried(&whole, sign, progress, interrupt)
}
