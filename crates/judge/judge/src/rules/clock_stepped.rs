//! Detects jumps of the clocks.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum jump of the wall clock. Slewing (at most 500 ppm) and the delay between the readings of
/// two clocks can cause smaller jumps.
const STEP_NS_MIN: u64 = 100_000_000;

pub const RULE: Rule = Rule {
    id: "clock-stepped",
    asks: "did a clock jump during the measurement?",
    explains: "Latencies are measured with the monotonic clock, which never jumps. Once a second, \
        the rule compares the wall clock with the monotonic clock. A jump of more than 100 ms is \
        a warning: the run's times then do not match the logs of other hosts. If the kernel \
        changes its clock source during the run (because the time-stamp counter is unstable), the \
        rule fails for percentiles.",
    bears_on: &[(Claim::TailLatency, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let clock = &bundle.observed.clock;
    if let Some(change) = &clock.source_changed {
        let says = format!("the kernel changed its clock source during the run: {change}");
        return Some(
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise("check the kernel log for an unstable time-stamp counter"),
        );
    }
    let step_ns = clock.step_ns_max?;
    let finding = if step_ns > STEP_NS_MIN {
        let says = format!("the wall clock jumped by {:.2} s during the run", step_ns as f64 / 1e9);
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("synchronise the clock before the run (chrony, ntpd)")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "no clock jumped")
    };
    Some(finding.with("step_ns", step_ns))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_jump_warns_and_a_new_clock_source_fails() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.observed.clock.step_ns_max = Some(99_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.clock.step_ns_max = Some(101_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.observed.clock.source_changed = Some("tsc to hpet".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }
}
