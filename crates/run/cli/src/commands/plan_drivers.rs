//! Selects the hosts that run several plans: the arms of an experiment, or the stages of a job.

use std::sync::atomic::AtomicBool;

use plimsoll_fleet::coordinator;
use plimsoll_plan::ResolvedPlan;

use super::load_hosts::{HostDriver, LoadHosts};
use crate::error::CliError;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Name of a plan, and the resolved plan.
pub type NamedPlan<'a> = (&'a str, &'a ResolvedPlan);

/// Selects the hosts that run all plans: this host, or one fleet.
///
/// # Errors
/// There is no plan, a fleet cannot run one of the plans, there are too few agents, or the server
/// cannot be reached.
pub fn for_all(
    plans: &[NamedPlan<'_>],
    hosts: &LoadHosts,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<HostDriver, CliError> {
    let Some((_, first)) = plans.first() else {
        return Err(CliError::usage("there is no plan to run"));
    };
    for (name, resolved) in plans.iter().filter(|_| hosts.uses_fleet()) {
        coordinator::check(resolved).map_err(|error| error.hint(format!("this plan is {name}")))?;
    }
    // The agents of a local fleet may use the targets of all these plans.
    let targets = plans.iter().flat_map(|(_, resolved)| resolved.targets.clone()).collect();
    let whole = ResolvedPlan { targets, ..(*first).clone() };
    hosts.select(&whole, sign, progress, interrupt)
}
