//! Was the trace replayed at all, without errors and by a generator that kept its times?

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight, check_failed, io_errors, not_completed, was_stopped};
use super::{begun, planned, time};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "trace-not-replayed",
    asks: "was the trace replayed to its end, without errors, and was the load generator itself in time?",
    explains: "A replay with an I/O error or a failed check of data, one that did not complete, and one in which the \
        generator's process stood still is no replay of the trace. Nor is one whose operations had a free place and were \
        begun late all the same (99th percentile beyond `workload.trace.lag_max`): then the load generator missed the \
        trace's times, or the target blocks the calls that hand operations over. Use a faster host, or a slower `pace`.",
    bears_on: &[(Claim::TraceReplay, Weight::Mandatory), (Claim::Requirement, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    // What poisons any run poisons a replay.
    for rule in [io_errors::RULE, check_failed::RULE, not_completed::RULE, was_stopped::RULE] {
        let found = (rule.check)(bundle).filter(|found| found.outcome == Outcome::Fail);
        if let Some(found) = found {
            let finding = Finding::new(RULE.id, Outcome::Fail, found.says).advise(found.advice);
            return Some(finding.with("rule", rule.id));
        }
    }
    if begun(bundle).is_none() {
        let says = "the trace was not replayed to the end of the measured phase";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("run it again"));
    }
    let own = bundle.observed.generator.lag.as_ref().filter(|_| source.speed.is_some());
    let finding = match own.map(|lag| lag.wait_ns_p99) {
        Some(ns) if ns > source.lag_max_ns => {
            let says = format!(
                "operations that had a free place began late, {} after their times at the 99th percentile: the load \
                 generator held them up, or a call that hands operations to the target did not return at once",
                time(ns)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise("use a faster host or a slower `pace`; where its CPUs were idle, the target blocks the calls")
                .with("generator_lag_ns_p99", ns)
        }
        ns => {
            let finding = Finding::new(RULE.id, Outcome::Pass, "replayed without errors");
            ns.into_iter().fold(finding, |finding, ns| finding.with("generator_lag_ns_p99", ns))
        }
    };
    Some(finding)
}
