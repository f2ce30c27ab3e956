//! Checks that the replay finished without errors and that the load generator was on time.

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight, check_failed, io_errors, not_completed, was_stopped};
use super::{planned, started_part, time};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "trace-not-replayed",
    asks: "was the trace replayed to its end, without errors and without delays by the load \
           generator?",
    explains: "The rule fails if there was an I/O error or a failed data check, if the replay is \
               incomplete, or if the generator was stopped. It also fails if operations started \
               late although a slot was free (99th percentile above `workload.trace.lag_max`): the \
               load generator was late, or the target blocked the calls that submit I/O. Use a \
               faster host, or a slower `pace`.",
    bears_on: &[(Claim::TraceReplay, Weight::Mandatory), (Claim::Requirement, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    // If one of these rules fails, the replay is invalid, like any other run.
    for rule in [io_errors::RULE, check_failed::RULE, not_completed::RULE, was_stopped::RULE] {
        let found = (rule.check)(bundle).filter(|found| found.outcome == Outcome::Fail);
        if let Some(found) = found {
            let finding = Finding::new(RULE.id, Outcome::Fail, found.says).advise(found.advice);
            return Some(finding.with("rule", rule.id));
        }
    }
    if started_part(bundle).is_none() {
        let says = "the trace was not replayed to the end of the measured phase";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("repeat the run"));
    }
    let own = bundle.observed.generator.lag.as_ref().filter(|_| source.speed.is_some());
    let finding = match own.map(|lag| lag.wait_ns_p99) {
        Some(ns) if ns > source.lag_max_ns => {
            let says = format!(
                "operations started late although a slot was free (99th percentile of the delay: \
                 {}): the load generator delayed them, or the target blocked the calls that submit \
                 I/O",
                time(ns)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise(
                    "use a faster host or a slower `pace`; if the host's CPUs were idle, the target \
                     blocked the calls",
                )
                .with("generator_lag_ns_p99", ns)
        }
        ns => {
            let finding = Finding::new(RULE.id, Outcome::Pass, "replayed without errors");
            ns.into_iter().fold(finding, |finding, ns| finding.with("generator_lag_ns_p99", ns))
        }
    };
    Some(finding)
}
