//! What is asked for: a plan to run, what becomes of its data and evidence, and of whom: this host, or several at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_engine::allowed::AllowedPlaces;
use plimsoll_evidence::run::Membership;
use plimsoll_plan::{Plan, ResolvedPlan};

use crate::error::RunnerError;
use crate::finished::Finished;
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::places::Places;

/// What to run, and what becomes of it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The plan as given.
    pub plan: &'a Plan,
    /// As resolved, with one target.
    pub resolved: &'a ResolvedPlan,
    /// Whether the data stays.
    pub keep: bool,
    /// Where acknowledged commits are written, if anywhere.
    pub witness: Option<&'a Path>,
    /// Devices whose data may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Where the bundle, or the directory of all of them, is made.
    pub bundles: &'a Path,
    /// Ledger and generation maps.
    pub places: &'a Places,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Who carries it out.
    pub driver: &'a dyn Driver,
}

/// One run of it.
pub struct Request<'a> {
    /// What to run; the bundle is made in its directory.
    pub asked: Asked<'a>,
    /// Its place in an experiment, if it has one.
    pub experiment: Option<Membership>,
    /// Data that an earlier run left for this one, and this one may leave for the next.
    pub data: &'a DataSlot,
}

/// Carries runs out: repeats, sweeps, searches and comparisons ask for one after the other, and take what it leaves.
pub trait Driver: Sync {
    /// How many hosts carry the plan out, each all of it.
    fn hosts(&self) -> u32;

    /// Carries one run out. From the moment that its data is begun it leaves evidence, whatever happens.
    ///
    /// # Errors
    /// A workload or target that cannot be run, evidence that cannot be written.
    fn run_once(
        &self,
        request: &Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunnerError>;

    /// What the places of a run must be in, on this host; `None` if they may be anywhere.
    fn allowed(&self) -> Option<&AllowedPlaces> {
        None
    }

    /// After the last of several runs: removes the data that lies elsewhere for the next one.
    ///
    /// # Errors
    /// Data that can't be removed.
    fn release(&self, listener: &mut dyn Listener) -> Result<(), RunnerError> {
        let _ = listener;
        Ok(())
    }
}

/// Refuses a plan that says which agents of a fleet carry it, where one host is to.
///
/// # Errors
/// Such a plan.
pub fn of_one_host(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    if plan.fleet.is_none() {
        return Ok(());
    }
    let says = "the plan says which agents of a fleet carry it, and this is one host";
    Err(RunnerError::usage(says)
        .hint("name the fleet's server, `--fleet nats://host`, or leave [fleet] out"))
}
