//! Checks that neither the hypervisor nor a quota withheld CPU time.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Limits on the share of stolen CPU time. They are our choice. The share measured on an idle
/// virtual machine was 0.06 %.
const STEAL_FAIL: f64 = 0.10;
const STEAL_WARN: f64 = 0.02;
/// Limit on the share of time throttled by a CPU quota.
const THROTTLED_WARN: f64 = 0.01;

pub const RULE: Rule = Rule {
    id: "cpu-steal",
    asks: "did the hypervisor steal CPU time, or did a quota withhold it?",
    explains: "While the hypervisor does not run a virtual CPU, completions wait, so latencies \
     include this delay. The rule warns if more than 2 % of the CPU time is stolen. If more than \
     10 % is stolen, the rule fails for percentiles and comparisons. It also warns if the control \
     group was throttled. Run on a dedicated host, or when the host is idle.",
    bears_on: &[
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let duration_ns = measured(bundle)?.duration_ns;
    let Some(steal) = bundle.observed.cpu.steal_avg else {
        // A result file alone contains no data about the host.
        return (bundle.run.driver == Driver::Real || !bundle.observed.devices.is_empty()).then(
            || {
                Finding::new(RULE.id, Outcome::Unknown, "stolen CPU time cannot be read")
                    .advise("mount /proc")
            },
        );
    };
    let throttled_ns = bundle.observed.cpu.throttled_ns.unwrap_or(0);
    // The kernel adds up the times of all CPUs.
    let cpus = bundle.environment.cpus.unwrap_or(1).max(1);
    let throttled = throttled_ns as f64 / (duration_ns as f64 * f64::from(cpus));
    let outcome = match steal {
        s if s > STEAL_FAIL => Outcome::Fail,
        s if s > STEAL_WARN => Outcome::Warn,
        _ if throttled > THROTTLED_WARN => Outcome::Warn,
        _ => Outcome::Pass,
    };
    let mut says = format!("the hypervisor stole {} of the CPU time", evidence::percent(steal));
    if throttled > THROTTLED_WARN {
        says.push_str(&format!(", and a quota withheld {} of it", evidence::percent(throttled)));
    }
    let finding = Finding::new(RULE.id, outcome, says).with("steal_share", steal);
    Some(match outcome {
        Outcome::Pass => finding,
        _ => finding.advise("run on a dedicated host, or when the host is idle"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn steal_warns_and_then_fails() {
        let mut bundle = fixtures::reads();
        let mut at = |steal| {
            bundle.observed.cpu.steal_avg = steal;
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(at(Some(0.02)), Some(Outcome::Pass));
        assert_eq!(at(Some(0.03)), Some(Outcome::Warn));
        assert_eq!(at(Some(0.11)), Some(Outcome::Fail));
        assert_eq!(at(None), Some(Outcome::Unknown));
    }

    #[test]
    fn a_quota_warns() {
        let mut bundle = fixtures::reads();
        bundle.environment.cpus = Some(4);
        bundle.observed.cpu.throttled_ns = Some(fixtures::SECONDS * fixtures::SECOND_NS * 2);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Warn);
        assert!(finding.says.ends_with("a quota withheld 50 % of it"), "{}", finding.says);
    }
}
