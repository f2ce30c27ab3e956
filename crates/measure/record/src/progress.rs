//! Progress reports of a run.

use std::fmt::Debug;

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;

/// Progress of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Time since the phase began.
    pub elapsed_ns: u64,
    /// Number of bytes already processed; 0 if the phase is not limited by bytes.
    pub done_bytes: u64,
    /// Total number of bytes to process; 0 if the phase is not limited by bytes.
    pub total_bytes: u64,
    /// Duration of the phase; 0 if it is not limited by time.
    pub total_ns: u64,
    /// I/Os per second in the last interval. If the workload has transactional I/Os, only these
    /// count.
    pub rate_ops_per_s: f64,
    /// Bytes per second in the last interval.
    pub rate_bytes_per_s: f64,
    /// Mean latency of the reads in the last interval, or of the writes if there were no reads.
    pub latency_ns_avg: Option<u64>,
}

/// Receives the progress of a run.
pub trait Watcher {
    /// Returns the start time of a phase that drives the target and is ready at `ready_ns`. `None`
    /// means that the caller must call the function again later. In a fleet, this delays the start
    /// until the last host is ready. `run_start_ns` is the start of the run. All times are on the
    /// driver's clock.
    fn begins_at(&mut self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        let _ = (kind, run_start_ns);
        Some(ready_ns)
    }
    /// If somebody other than this host's operator stopped the run, returns who stopped it and why.
    fn stop_reason(&self) -> Option<String> {
        None
    }
    /// Called at the start of a phase.
    fn begin(&mut self, kind: PhaseKind);
    /// Called during a phase.
    fn progress(&mut self, kind: PhaseKind, progress: &Progress);
    /// Receives new rows of the series, which contain intervals of classes, or gauges.
    fn rows(&mut self, rows: &[Row]) {
        let _ = rows;
    }
    /// Receives new histograms, one for each class and thread. It is called at most once a second.
    fn latencies(&mut self, intervals: &[Interval]) {
        let _ = intervals;
    }
    /// Called at the end of a phase.
    fn end(&mut self, phase: &Phase);
}

/// Decides when phases begin ([`Watcher::begins_at`]); implemented by other crates.
pub trait Gate: Debug + Send + Sync {
    /// See [`Watcher::begins_at`].
    fn begins_at(&self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64>;
    /// See [`Watcher::stop_reason`].
    fn stop_reason(&self) -> Option<String>;
}

/// [`Watcher`] that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentWatcher;

impl Watcher for SilentWatcher {
    fn begin(&mut self, _kind: PhaseKind) {}
    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}
