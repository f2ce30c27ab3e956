//! Rules and checks for replays of traces.

pub mod late;
pub mod left_out;
pub mod not_replayed;
pub mod other;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Replay, TraceBegun};
use plimsoll_plan::TraceSource;

use crate::figures::measured;
use crate::verdict::{Check, Quantity};

/// Maximum deviation of a replay's rate, mix and bytes from those of the trace.
pub const SLACK: f64 = 0.02;

/// Returns the trace that the plan replays; `None` for other workloads.
fn planned(bundle: &Bundle) -> Option<&TraceSource> {
    bundle.plan.workload.trace()
}

/// If the measured phase finished, returns the part of the trace whose operations were started.
fn started_part(bundle: &Bundle) -> Option<(&Replay, &TraceBegun)> {
    measured(bundle).filter(|phase| phase.reached)?;
    let replay = bundle.observed.replay.as_deref()?;
    Some((replay, replay.begun.as_ref()?))
}

/// Returns operations per second; `None` if the time is zero.
fn rate_per_s(operations: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| operations as f64 / (ns as f64 / 1e9))
}

/// Returns the rate that the trace requests at the replay's pace, and the rate at which operations
/// were started.
fn rates_per_s(replay: &Replay, begun: &TraceBegun) -> Option<(f64, f64)> {
    let due = &replay.due;
    let requested = rate_per_s(due.operations + due.flushes, due.span_ns)?;
    Some((requested, rate_per_s(begun.operations, begun.took_ns?)?))
}

/// Returns the checks of a replay that follows the times of the trace. A replay at full speed has
/// no such checks.
pub fn checks(bundle: &Bundle) -> Vec<Check> {
    let Some(source) = planned(bundle).filter(|source| source.speed.is_some()) else {
        return Vec::new();
    };
    let Some((replay, begun)) = started_part(bundle) else { return Vec::new() };
    let mut checks = Vec::new();
    if let Some((requested, measured)) = rates_per_s(replay, begun) {
        // In a short trace, the allowed lag of the last operation that started may lower the rate
        // noticeably.
        let (span_ns, lag_ns) = (replay.due.span_ns as f64, source.lag_max_ns as f64);
        let limit_per_s = requested * span_ns / (span_ns + lag_ns.max(span_ns * SLACK));
        let quantity = Quantity::Rate { limit_per_s, measured_per_s: Some(measured) };
        let check = Check::undecided("trace_rate", quantity, true);
        let note = "rate of starts; must be within 2 % of the trace's rate unless `lag_max` \
                    explains the difference";
        checks.push(check.with_result(Some(measured >= limit_per_s)).with_note(note));
    }
    let lags = [
        ("trace_lag_p99", begun.lag.as_ref().map(|lag| lag.wait_ns_p99), "of started operations"),
        ("trace_lag_end", begun.lag_end_ns, "of the last operation that started"),
    ];
    for (name, measured_ns, note) in lags {
        let quantity = Quantity::Latency { limit_ns: source.lag_max_ns, measured_ns };
        let ok = measured_ns.map(|ns| ns <= source.lag_max_ns);
        checks.push(Check::undecided(name, quantity, false).with_result(ok).with_note(note));
    }
    checks
}

/// Formats a time with its unit.
fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests;
