//! Records of a replayed trace.

use std::sync::Arc;

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::observed::{Lag, Replay, TraceBegun, TraceDue, TraceMapping};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_workload::trace::{self, Trace};

use crate::histogram::{Tally, Totals};
use crate::recording::Recording;

/// Tag of the histogram of start delays relative to the trace.
pub const LAG_TAG: &str = "generator.trace_lag";

/// Time after the end of the replay during which due operations are still started. Later arrivals
/// are reported as never started. A slow target does not extend a replay.
pub const BACKLOG_NS: u64 = 1_000_000_000;

/// A trace to replay.
#[derive(Clone, Debug)]
pub struct ReplayTrace {
    /// Operations.
    pub trace: Trace,
    /// Description, before mapping to a target.
    pub about: Replay,
}

/// Start delays of the replayed operations.
#[derive(Debug, Default)]
pub struct Lags {
    /// Histogram.
    pub times: Totals,
    /// Sum.
    pub sum_ns: u64,
    /// Delay of the last operation.
    pub end_ns: u64,
    /// Operations that were due and never started.
    pub never: u64,
    /// Number of threads that contributed.
    pub threads: u32,
}

/// Start delays during the measurement.
#[derive(Debug, Default)]
pub struct LagTally {
    times: Tally,
    sum_ns: u64,
    last_ns: u64,
    never: u64,
    never_since_ns: Option<u64>,
}

impl LagTally {
    /// Records an operation that started `lag_ns` late.
    #[inline]
    pub fn begun(&mut self, lag_ns: u64) {
        self.times.record(lag_ns);
        self.sum_ns = self.sum_ns.saturating_add(lag_ns);
        self.last_ns = lag_ns;
    }

    /// Records an operation that was due at `due_ns` and never started.
    pub fn never(&mut self, due_ns: u64) {
        self.never += 1;
        self.never_since_ns.get_or_insert(due_ns);
    }

    /// Returns all delays at the end of the run.
    #[must_use]
    pub fn end(&mut self, now_ns: u64) -> Lags {
        let mut times = Totals::new();
        self.times.drain_into(&mut [&mut times]);
        let waited_ns = self.never_since_ns.map(|since_ns| now_ns.saturating_sub(since_ns));
        let end_ns = waited_ns.unwrap_or(self.last_ns);
        Lags { times, sum_ns: self.sum_ns, end_ns, never: self.never, threads: 1 }
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
        let all = &lags.times;
        let lag = || {
            Some(Lag {
                operations: all.count(),
                wait_ns_sum: lags.sum_ns,
                wait_ns_p50: all.quantile_ns(0.5)?,
                wait_ns_p99: all.quantile_ns(0.99)?,
                wait_ns_max: all.max_ns()?,
            })
        };
        let lag = if at_times { lag() } else { None };
        let took_ns = match at_times {
            true => due.span_ns.saturating_add(lags.end_ns),
            false => measure.duration_ns,
        };
        if lag.is_some() {
            let (start_ns, duration_ns) = (measure.start_ns, measure.duration_ns);
            let (tag, histogram) = (LAG_TAG.to_owned(), (&all.to_hdr()).into());
            recording.intervals.push(Interval { tag, start_ns, duration_ns, histogram });
        }
        replay.begun = Some(TraceBegun {
            operations: all.count(),
            never: lags.never,
            threads: lags.threads,
            took_ns: Some(took_ns),
            lag,
            lag_end_ns: at_times.then_some(lags.end_ns),
        });
    }
    recording.observed.replay = Some(Box::new(replay));
}
