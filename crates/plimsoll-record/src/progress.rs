//! What a run tells while it goes on.

use std::fmt::Debug;

use plimsoll_evidence::latency::Interval;
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
    /// When a phase may begin that drives the target and is ready to from `ready_ns` on, both on the driver's clock,
    /// as is the start of the run, `run_start_ns`. `None`: not yet, ask again. Whoever has several hosts start together
    /// waits here for the last of them.
    fn begins_at(&mut self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        let _ = (kind, run_start_ns);
        Some(ready_ns)
    }
    /// A phase begins.
    fn begin(&mut self, kind: PhaseKind);
    /// It goes on.
    fn progress(&mut self, kind: PhaseKind, progress: &Progress);
    /// Rows of the series that have come about since the last call: intervals of classes, and gauges.
    fn rows(&mut self, rows: &[Row]) {
        let _ = rows;
    }
    /// Histograms that have come about since the last call: one of each class and thread a second, or less often.
    fn latencies(&mut self, intervals: &[Interval]) {
        let _ = intervals;
    }
    /// It has ended.
    fn end(&mut self, phase: &Phase);
}

/// Says when phases begin ([`Watcher::begins_at`]), for watchers that are made elsewhere.
pub trait Gate: Debug + Send + Sync {
    /// As [`Watcher::begins_at`].
    fn begins_at(&self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64>;
}

/// A [`Watcher`] that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begin(&mut self, _kind: PhaseKind) {}
    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}
