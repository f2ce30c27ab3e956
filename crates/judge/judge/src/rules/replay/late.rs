//! Checks that a replay started operations at the times of the trace.

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight, generator_limit};
use super::{planned, rates_per_s, started_part, time};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "trace-late",
    asks: "did the replay start operations at the times of the trace, or did it fall behind?",
    explains: "Each operation of a trace has a start time. The lag of an operation is the delay of \
               its start. Operations wait because the maximum number of operations is in flight \
               (the target is slow), or because the load generator is late. If the 99th percentile \
               of the lag, or the lag of the last operation, is above `workload.trace.lag_max`, the \
               replay fell behind: the target received a lower rate than the trace requested. \
               Latency is measured from the time in the trace, so it includes the lag. If one of \
               the checks `trace_rate`, `trace_lag_p99` and `trace_lag_end` is not met, the verdict \
               is FAIL. Operations that have not started one second after the end count as never \
               started. A replay at full speed ignores the times of the trace; the rule reports its \
               duration.",
    bears_on: &[(Claim::TraceReplay, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    let Some((replay, begun)) = started_part(bundle) else {
        let says =
            "the trace was not replayed to the end of the measured phase: its lag is unknown";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("repeat the run"));
    };
    if source.speed.is_none() {
        let took_ns = begun.took_ns?;
        let times = replay.span_ns as f64 / took_ns.max(1) as f64;
        let says = format!(
            "at full speed, {} operations took {}; in the trace they took {}, so the replay was \
             {times:.2} times as fast",
            begun.operations,
            time(took_ns),
            time(replay.span_ns)
        );
        let finding = Finding::new(RULE.id, Outcome::Pass, says);
        return Some(finding.with("took_ns", took_ns).with("times_as_fast", times));
    }
    let lag = begun.lag.as_ref();
    let (p99_ns, end_ns) = (lag.map_or(u64::MAX, |lag| lag.wait_ns_p99), begun.lag_end_ns?);
    let late = p99_ns > source.lag_max_ns || end_ns > source.lag_max_ns || begun.never > 0;
    let lags = lag.map_or_else(
        || "no operation started".to_owned(),
        |lag| {
            format!(
                "the lag of operations was {} (p50), {} (p99) and {} (maximum); the lag of the last \
                 operation that started was {}",
                time(lag.wait_ns_p50),
                time(lag.wait_ns_p99),
                time(lag.wait_ns_max),
                time(end_ns)
            )
        },
    );
    let mut finding = if late {
        let never = match begun.never {
            0 => String::new(),
            n => format!(", and {n} of {} operations never started", replay.due.operations),
        };
        let took = begun.took_ns.map_or(String::new(), |ns| {
            format!(
                "; the replay of a part of the trace that is {} long took {}",
                time(replay.due.span_ns),
                time(ns)
            )
        });
        let says = format!("the replay fell behind the trace: {lags}{never}{took}");
        let advice = if generator_limit::at_limit(bundle) {
            "the load generator was at its limit: use a faster host"
        } else {
            "the target does not sustain this trace at this pace; `queue_depth` of [workload.trace] \
             limits the operations in flight"
        };
        Finding::new(RULE.id, Outcome::Fail, says).advise(advice)
    } else {
        Finding::new(RULE.id, Outcome::Pass, lags)
    };
    if let Some(lag) = lag {
        finding = finding
            .with("lag_ns_p50", lag.wait_ns_p50)
            .with("lag_ns_p99", lag.wait_ns_p99)
            .with("lag_ns_max", lag.wait_ns_max);
    }
    if let Some((requested, measured)) = rates_per_s(replay, begun) {
        finding = finding.with("trace_per_s", requested).with("begun_per_s", measured);
    }
    Some(finding.with("lag_ns_end", end_ns).with("never_begun", begun.never))
}
