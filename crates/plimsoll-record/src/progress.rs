//! What a run tells while it goes on.

use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;

/// How far a phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since the phase began.
    pub elapsed_ns: u64,
    /// Bytes done, and of how many; 0 where bytes are not what it goes by.
    pub done_bytes: u64,
    /// The phase's total in bytes.
    pub total_bytes: u64,
    /// How long it lasts, where time is what it goes by; 0 otherwise.
    pub total_ns: u64,
    /// I/Os per second in the last interval: transactional ones where there are any.
    pub rate_ops_per_s: f64,
    /// Bytes per second in the last interval.
    pub rate_bytes_per_s: f64,
    /// Mean latency of the last interval's reads (of its writes, where there are no reads).
    pub latency_ns_avg: Option<u64>,
}

/// Is told how a run goes.
pub trait Watcher {
    /// A phase begins.
    fn begin(&mut self, kind: PhaseKind);
    /// It goes on.
    fn progress(&mut self, kind: PhaseKind, progress: &Progress);
    /// Rows of the series that have come about since the last call: intervals of classes, and gauges.
    fn rows(&mut self, rows: &[Row]) {
        let _ = rows;
    }
    /// It has ended.
    fn end(&mut self, phase: &Phase);
}

/// A [`Watcher`] that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begin(&mut self, _kind: PhaseKind) {}
    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}
