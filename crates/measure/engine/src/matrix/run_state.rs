//! State of a matrix run that all phases share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::observed::Replay;
use plimsoll_plan::{Matrix, ResolvedPlan};
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;
use plimsoll_record::replay::ReplayTrace;
use plimsoll_record::spool::Spool;
use plimsoll_workload::planned::gate::StreamGate;

use super::data_set::DataSet;
use crate::end_condition::EndCondition;
use crate::placement::WakeSource;

/// Input of a matrix run on files, a device or the null target.
pub struct MatrixRun<'a> {
    /// Plan with a single target. For a sweep, it contains a single point.
    pub plan: &'a ResolvedPlan,
    /// Matrix of the plan.
    pub matrix: &'a Matrix,
    /// Trace to replay; `None` if the plan replays no trace.
    pub trace: Option<ReplayTrace>,
    /// Data set. The run creates the data if it does not exist yet.
    pub data_set: DataSet,
    /// Turns true if the operator interrupts the run.
    pub interrupt: &'a AtomicBool,
    /// Receives progress reports.
    pub watcher: &'a mut dyn Watcher,
    /// End condition of conditioning, and of a measurement that lasts until the load is steady.
    pub end_condition: &'a mut dyn EndCondition,
    /// Load of `random-overwrite` conditioning ([`super::condition::random_overwrite`]).
    pub overwriting: &'a Matrix,
    /// Gate of each stream that starts at an event; `None` for all other streams.
    pub gates: Vec<Option<Arc<StreamGate>>>,
    /// Optional temporary file to which older rows and histograms are moved.
    pub spool: Option<Spool>,
}

/// Run in progress.
pub(super) struct MatrixRunState<'a> {
    pub(super) matrix: MatrixRun<'a>,
    pub(super) recording: Recording,
    /// Directories or device that the run observes.
    pub(super) places: Vec<PathBuf>,
    pub(super) cpus: Vec<usize>,
    /// Source of the wake-ups of the driving threads.
    pub(super) wake_source: WakeSource,
    /// Description of the replayed trace. It is set when the trace is mapped to the target.
    pub(super) replay: Option<Replay>,
}
