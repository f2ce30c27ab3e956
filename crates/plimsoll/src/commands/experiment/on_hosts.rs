//! An experiment's real arms on the hosts of a fleet.

use std::sync::atomic::AtomicBool;

use plimsoll_experiments::{ExperimentPlan, StorageKind};

use crate::commands::carried::for_all;
use crate::commands::load_hosts::{Carried, LoadHosts};
use crate::error::CliError;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Who carries an experiment's runs out.
///
/// # Errors
/// A model that a fleet is asked for, an arm that a fleet can't carry, too few agents.
pub fn carried(
    planned: &ExperimentPlan,
    hosts: &LoadHosts,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Carried, CliError> {
    if hosts.is_asked_for() && planned.on == StorageKind::Model {
        return Err(CliError::usage("a model runs on this host alone")
            .hint("--on real has the hosts of a fleet load real storage"));
    }
    let arms: Vec<_> = planned.arms.iter().chain(&planned.searches).collect();
    let names: Vec<String> = arms.iter().map(|arm| format!("arm {}", arm.name)).collect();
    let named = names.iter().zip(&arms).map(|(name, arm)| (&**name, &arm.resolved));
    for_all(&named.collect::<Vec<_>>(), hosts, sign, progress, interrupt)
}
