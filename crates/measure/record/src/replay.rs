//! Records how a trace was replayed.

use std::sync::Arc;

use plimsoll_evidence::observed::{Replay, TraceBegun, TraceDue, TraceMapping};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_workload::trace::{self, Trace};

use crate::generator::WaitTotals;
use crate::histogram::{HistogramTable, WaitKind};
use crate::recording::Recording;
use crate::totals::Waits;

/// Tag of the histogram of start delays, measured against the times in the trace.
pub const LAG_TAG: &str = "generator.trace_lag";

/// Time after the end of the replay during which due operations are still started. Operations that
/// have not started by then are reported as never started. A slow target therefore cannot extend a
/// replay.
pub const BACKLOG_NS: u64 = 1_000_000_000;

/// A trace to replay.
#[derive(Clone, Debug)]
pub struct ReplayTrace {
    /// Operations.
    pub trace: Trace,
    /// Description of the trace before it was mapped to a target.
    pub about: Replay,
}

/// Start delays of a replay's operations.
#[derive(Debug, Default)]
pub struct Lags {
    /// Start delays of all operations.
    pub waits: WaitTotals,
    /// Start delay of the last operation.
    pub end_ns: u64,
    /// Number of operations that were due and never started.
    pub never: u64,
    /// Number of threads that replayed the trace.
    pub threads: u32,
}

/// Start delays in one thread during the measurement.
#[derive(Debug)]
pub struct LagTally {
    waits: Waits,
    times: HistogramTable,
    last_ns: u64,
    never: u64,
    never_since_ns: Option<u64>,
}

impl Default for LagTally {
    fn default() -> Self {
        let times = HistogramTable::sparse(0);
        Self { waits: Waits::default(), times, last_ns: 0, never: 0, never_since_ns: None }
    }
}

impl LagTally {
    /// Records an operation that started `lag_ns` late.
    #[inline]
    pub fn begun(&mut self, lag_ns: u64) {
        self.times.count_wait(WaitKind::Own, lag_ns);
        self.waits.add(&Waits { count: 1, ns_sum: lag_ns, ns_max: lag_ns });
        self.last_ns = lag_ns;
    }

    /// Records an operation that was due at `due_ns` and never started.
    pub fn never(&mut self, due_ns: u64) {
        self.never += 1;
        self.never_since_ns.get_or_insert(due_ns);
    }

    /// Returns the delays of all operations, at the end of the run.
    #[must_use]
    pub fn end(&mut self, now_ns: u64) -> Lags {
        let mut waits = WaitTotals::default();
        waits.add(&std::mem::take(&mut self.waits));
        self.times.take_waits(WaitKind::Own, &mut |bucket, count| waits.times.add(bucket, count));
        let waited_ns = self.never_since_ns.map(|since_ns| now_ns.saturating_sub(since_ns));
        let end_ns = waited_ns.unwrap_or(self.last_ns);
        Lags { waits, end_ns, never: self.never, threads: 1 }
    }
}

/// Adds a replay to the evidence: the trace, its mapping to the target, and the started operations.
pub fn note(
    recording: &mut Recording,
    about: Replay,
    laid: &Arc<trace::Replay>,
    lags: Option<Lags>,
) {
    let mapping = laid.mapping();
    let due = laid.due();
    let mut replay = Replay {
        mapping: TraceMapping {
            rule: mapping.rule.to_owned(),
            target_bytes: mapping.target_bytes,
            extent_bytes: mapping.extent_bytes,
            touched_bytes: mapping.touched_bytes,
            mapped_bytes: Some(mapping.mapped_bytes),
            moved: mapping.moved,
            folded: mapping.folded,
            rounded: mapping.rounded,
            outside: mapping.outside,
        },
        due: TraceDue {
            operations: due.operations,
            reads: due.reads,
            flushes: due.flushes,
            size_bytes: due.bytes,
            span_ns: due.span_ns,
        },
        begun: None,
        ..about
    };
    replay.trace.out_of_order = laid.out_of_order();
    let measure = recording.phases.iter().find(|phase| phase.kind == PhaseKind::Measure);
    if let (Some(lags), Some(measure)) = (lags, measure) {
        let at_times = laid.at_times();
        let lag = lags.waits.lag().filter(|_| at_times);
        let took_ns = match at_times {
            true => due.span_ns.saturating_add(lags.end_ns),
            false => measure.duration_ns,
        };
        if lag.is_some() {
            let waits = lags.waits.interval(LAG_TAG, measure.start_ns, measure.duration_ns);
            recording.intervals.push(waits);
        }
        replay.begun = Some(TraceBegun {
            operations: lags.waits.waits.count,
            never: lags.never,
            threads: lags.threads,
            took_ns: Some(took_ns),
            lag,
            lag_end_ns: at_times.then_some(lags.end_ns),
        });
    }
    recording.observed.replay = Some(Box::new(replay));
}
