//! An experiment's real arms on the hosts of a fleet.

use std::sync::atomic::AtomicBool;

use plimsoll_experiments::{On, Planned};
use plimsoll_fleet::coordinator;
use plimsoll_plan::ResolvedPlan;

use crate::commands::load_hosts::{Carried, LoadHosts};
use crate::error::CliError;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Who carries an experiment's runs out.
///
/// # Errors
/// An arm that a fleet can't carry, too few agents, a server that can't be reached.
pub fn carried(
    planned: &Planned,
    hosts: &LoadHosts,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Carried, CliError> {
    let arms = || planned.arms.iter().chain(&planned.searches);
    if hosts.is_asked_for() {
        if planned.on == On::Model {
            return Err(CliError::usage("a model runs on this host alone")
                .hint("--on real has the hosts of a fleet load real storage"));
        }
        for arm in arms() {
            coordinator::check(&arm.plan, &arm.resolved)
                .map_err(|error| CliError::from(error).hint(format!("this is arm {}", arm.name)))?;
        }
    }
    let Some(first) = arms().next() else {
        return Err(CliError::usage("the experiment has no arm to run"));
    };
    // The places of all arms: agents of this host alone are allowed these.
    let targets = arms().flat_map(|arm| arm.resolved.targets.clone()).collect();
    let whole = ResolvedPlan { targets, ..first.resolved.clone() };
    hosts.carried(&whole, sign, progress, interrupt)
}
