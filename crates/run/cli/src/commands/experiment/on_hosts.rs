//! Runs the arms of an experiment on a fleet. Only arms on real storage can use a fleet.

use std::sync::atomic::AtomicBool;

use plimsoll_experiments::{ExperimentPlan, StorageKind};

use crate::commands::load_hosts::{HostDriver, LoadHosts};
use crate::commands::plan_drivers::for_all;
use crate::error::CliError;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Chooses where an experiment runs: on this host or on a fleet.
///
/// # Errors
/// A model was combined with a fleet, a fleet cannot run one of the arms, or there are too few
/// agents.
pub fn select_driver(
    planned: &ExperimentPlan,
    hosts: &LoadHosts,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<HostDriver, CliError> {
    if hosts.uses_fleet() && planned.on == StorageKind::Model {
        return Err(CliError::usage("a fleet cannot run models")
            .hint("use --on real: the hosts of the fleet then load real storage"));
    }
    let arms: Vec<_> = planned.arms.iter().chain(&planned.searches).collect();
    let names: Vec<String> = arms.iter().map(|arm| format!("arm {}", arm.name)).collect();
    let named = names.iter().zip(&arms).map(|(name, arm)| (&**name, &arm.resolved));
    for_all(&named.collect::<Vec<_>>(), hosts, sign, progress, interrupt)
}
