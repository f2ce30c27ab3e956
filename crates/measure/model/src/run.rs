//! Runs a load on a system in virtual time, and returns the results.

mod clients;
mod error;
mod events;
mod gauges;
mod mailbox;
mod matrix;
mod measured;
mod modelled;
mod phases;
mod recorder;
mod streams;
mod virtual_time;

pub use error::RunError;
pub use gauges::{Gauges, word};
pub use mailbox::run_mailbox;
pub use matrix::{MatrixLoad, Pattern};
pub use measured::{ClassResult, Contribution, RunResult, StationResult};
pub use modelled::ConfiguredModel;
pub use phases::ModelRun;
pub use streams::run_matrix;
pub use virtual_time::{Place, VirtualTime};

pub(crate) use matrix::Requests;
pub(crate) use recorder::Recorder;

use crate::system::System;
use plimsoll_plan::{ResolvedPlan, Workload};
use plimsoll_record::recording::Recording;

/// Length of a run. A run consists of a warm-up, whose results are discarded, and a measured
/// window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of operations that complete in the warm-up.
    pub warm_up_ops: u64,
    /// Number of operations that complete in the measured window.
    pub measure_ops: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up_ops: 4_000, measure_ops: 40_000 }
    }
}

/// Runs a plan on a model.
///
/// # Errors
/// [`RunError`] if a number in the plan or model is invalid. Errors that occur later are stored in
/// the recording.
pub fn run_plan(run: ModelRun<'_>) -> Result<Recording, RunError> {
    let plan = run.plan;
    match &plan.workload {
        Workload::Mailbox(mailbox) => run_mailbox(run, mailbox),
        Workload::Matrix(matrix) => run_matrix(run, matrix),
    }
}

/// Checks before a run whether a model can run a plan. The errors are those of [`run_plan`].
///
/// # Errors
/// See [`run_plan`].
pub fn check_plan(plan: &ResolvedPlan, model: &ConfiguredModel) -> Result<(), RunError> {
    let mut system = model.build(plan.seed)?;
    events::Events::new(plan, &events::gates(plan), &mut system)?;
    match &plan.workload {
        Workload::Mailbox(mailbox) => mailbox::store(mailbox, plan.seed, plan.seed).map(|_| ())?,
        Workload::Matrix(matrix) => streams::check(matrix, plan.seed)?,
    }
    Ok(())
}

pub fn simulate(system: &mut System, load: &MatrixLoad, limits: Limits, seed: u64) -> RunResult {
    matrix::run(system, load, limits, seed)
}
