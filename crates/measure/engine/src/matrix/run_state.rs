//! State that all phases of a matrix run share.

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
    /// Plan, which has exactly one target. If the plan is part of a sweep, it contains only one
    /// point of the sweep.
    pub plan: &'a ResolvedPlan,
    pub matrix: &'a Matrix,
    /// Trace to replay; `None` if the plan replays no trace.
    pub trace: Option<ReplayTrace>,
    /// Data set of the run. If its data does not exist yet, the run creates it.
    pub data_set: DataSet,
    /// Becomes true if the operator interrupts the run.
    pub interrupt: &'a AtomicBool,
    /// Object that receives progress reports.
    pub watcher: &'a mut dyn Watcher,
    /// Condition that ends the conditioning. It also ends the measurement if the measurement lasts
    /// until the load is steady.
    pub end_condition: &'a mut dyn EndCondition,
    /// Load for the conditioning `random-overwrite` ([`super::condition::random_overwrite`]).
    pub overwriting: &'a Matrix,
    /// For each stream: the gate that opens when the stream's start event occurs; `None` for a
    /// stream without a start event.
    pub gates: Vec<Option<Arc<StreamGate>>>,
    /// Temporary file to which older rows and histograms are moved; `None` if they stay in memory.
    pub spool: Option<Spool>,
}

/// State of a run in progress.
pub(super) struct MatrixRunState<'a> {
    pub(super) matrix: MatrixRun<'a>,
    pub(super) recording: Recording,
    /// Paths of the directories, or of the device, whose disks the run observes.
    pub(super) places: Vec<PathBuf>,
    pub(super) cpus: Vec<usize>,
    /// Where the wake-ups of the driving threads come from.
    pub(super) wake_source: WakeSource,
    /// Description of the replayed trace. The run sets it when it maps the trace to the target.
    pub(super) replay: Option<Replay>,
}
