//! Configuration of runs, a request for one run, and the trait of drivers that execute it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_engine::allow_list::AllowList;
use plimsoll_evidence::run::Membership;
use plimsoll_plan::{Plan, ResolvedPlan};

use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::Listener;
use crate::places::Places;

/// Plan to run, with options for its data and evidence.
#[derive(Clone, Copy)]
pub struct RunConfig<'a> {
    /// Plan as written by the user.
    pub plan: &'a Plan,
    /// Resolved plan with one target.
    pub resolved: &'a ResolvedPlan,
    /// True to keep the data after the run.
    pub keep: bool,
    /// File in which the run records acknowledged commits; `None` if there is no such file.
    pub witness: Option<&'a Path>,
    /// Devices that may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Parent directory of the bundle, or of the experiment's directory.
    pub bundles: &'a Path,
    /// Directories of the ledger and of generation maps.
    pub places: &'a Places,
    /// Set to true by the operator to stop the run.
    pub interrupt: &'a AtomicBool,
    /// Driver that executes the run.
    pub driver: &'a dyn Driver,
}

pub struct RunRequest<'a> {
    /// Configuration. Its `bundles` directory receives the bundle.
    pub config: RunConfig<'a>,
    pub experiment: Option<Membership>,
    /// Slot for data that runs of an experiment share.
    pub data: &'a DataSlot,
}

/// Executes runs, on this host or on a fleet. Repeats, sweeps, searches and comparisons request one
/// run after the other.
pub trait Driver: Send + Sync + std::fmt::Debug {
    /// Number of hosts. Each executes the whole plan.
    fn hosts(&self) -> u32;

    /// Executes one run. Once its data exists, the run writes evidence in all cases.
    ///
    /// # Errors
    /// The workload or target is unusable, or the evidence cannot be written.
    fn run_once(
        &self,
        request: &RunRequest<'_>,
        listener: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError>;

    /// Paths and exports that a run on this host may use. `None` allows all paths and exports.
    fn allowed(&self) -> Option<&AllowList> {
        None
    }

    /// Removes data that hosts kept for the next run. Called after the last of several runs.
    ///
    /// # Errors
    /// The data cannot be removed.
    fn release(&self, listener: &mut dyn Listener) -> Result<(), RunnerError> {
        let _ = listener;
        Ok(())
    }
}

/// Rejects a plan with a [fleet] table, which needs a fleet.
///
/// # Errors
/// The plan has a [fleet] table.
pub fn reject_fleet_plan(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let event = plan.events.iter().find(|event| event.needs_fleet());
    let (says, what) = match (&plan.fleet, event) {
        (None, None) => return Ok(()),
        (Some(_), _) => {
            ("the plan has a [fleet] table, but no fleet was given".to_owned(), "[fleet]")
        }
        (None, Some(event)) => (
            format!("event \"{}\" refers to a host of a fleet, but no fleet was given", event.name),
            "`host` and `expect_lost`",
        ),
    };
    let hint = format!(
        "specify the fleet's server with `--fleet nats://host`, or remove {what} from the plan"
    );
    Err(RunnerError::usage(says).hint(hint))
}
