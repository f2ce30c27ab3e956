//! A matrix run, as every phase has it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::observed::Replay;
use plimsoll_plan::{Matrix, ResolvedPlan};
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;
use plimsoll_record::replay::ReplayTrace;

use super::home::DataHome;
use crate::ending::Ending;
use crate::placement::WaitsFor;

/// A run of the matrix on files, a device or nothing.
pub struct MatrixRun<'a> {
    /// The plan, with one target and one point of a sweep.
    pub plan: &'a ResolvedPlan,
    /// Its matrix.
    pub matrix: &'a Matrix,
    /// The trace that it replays, where it replays one.
    pub trace: Option<ReplayTrace>,
    /// The data; made first where it isn't yet.
    pub home: DataHome,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Is told how it goes.
    pub watcher: &'a mut dyn Watcher,
    /// Decides when conditioning and a measurement until steady end.
    pub ending: &'a mut dyn Ending,
    /// The load of `random-overwrite` conditioning ([`super::condition::random_overwrite`]).
    pub overwriting: &'a Matrix,
}

/// A run under way.
pub(super) struct Running<'a> {
    pub(super) matrix: MatrixRun<'a>,
    pub(super) recording: Recording,
    /// What is observed.
    pub(super) places: Vec<PathBuf>,
    pub(super) cpus: Vec<usize>,
    /// What the driving threads wait for.
    pub(super) waits_for: WaitsFor,
    /// What is known of the trace that is replayed, from when it was laid onto the target.
    pub(super) replay: Option<Replay>,
}
