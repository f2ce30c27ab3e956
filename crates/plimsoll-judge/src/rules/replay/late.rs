//! Did the replay keep to the trace's times?

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight, generator_limit};
use super::{begun, planned, rates_per_s, time};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "trace-late",
    asks: "did a replayed trace keep to its times, or did it fall behind?",
    explains: "Each operation of a trace has its time. How long after it the operation was begun is its lag: it \
        waited because as many were in flight as may be (the target's doing), or because the load generator was late. \
        A 99th percentile or a last start beyond `workload.trace.lag_max` is a replay that fell behind: what the target \
        was asked for is less than what the trace asked for in the same time. Latency counts from the trace's time, so \
        that nothing of it is hidden, and the rows `trace_rate`, `trace_lag_p99` and `trace_lag_end` make the verdict \
        FAIL. Operations that had not begun a second after the end are counted. A replay as fast as the target \
        goes has no times to keep; it says how long it took.",
    bears_on: &[(Claim::TraceReplay, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    let Some((replay, begun)) = begun(bundle) else {
        let says =
            "the trace was not replayed to the end of the measured phase: its lag is not known";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("run it again"));
    };
    if source.speed.is_none() {
        let took_ns = begun.took_ns?;
        let times = replay.span_ns as f64 / took_ns.max(1) as f64;
        let says = format!(
            "as fast as the target goes: {} operations took {}, where the trace took {} ({times:.2} times as fast)",
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
        || "no operation began".to_owned(),
        |lag| {
            format!(
                "operations began {} (p50), {} (p99) and at most {} after their times, the last one {}",
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
            n => format!(", and {n} of {} never began", replay.due.operations),
        };
        let took = begun.took_ns.map_or(String::new(), |ns| {
            format!("; what took {} in the trace took {}", time(replay.due.span_ns), time(ns))
        });
        let says = format!("the replay fell behind the trace: {lags}{never}{took}");
        let advice = if generator_limit::at_limit(bundle) {
            "the load generator was at its limit: use a faster host"
        } else {
            "the target does not carry this trace at this pace; `queue_depth` of [workload.trace] bounds what is in flight"
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
    if let Some((asked, measured)) = rates_per_s(replay, begun) {
        finding = finding.with("trace_per_s", asked).with("begun_per_s", measured);
    }
    Some(finding.with("lag_ns_end", end_ns).with("never_begun", begun.never))
}
