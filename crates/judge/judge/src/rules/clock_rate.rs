//! Compares the run's clock with the kernel's clock.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::NS_PER_S;
use crate::finding::{Finding, Outcome};

/// Maximum relative difference of the two clocks. Real clocks agree within hundredths of a second.
const SHARE_MAX: f64 = 0.01;
/// Maximum delay between the readings of the two clocks on a busy host.
const READING_NS: u64 = 200_000_000;

pub const RULE: Rule = Rule {
    id: "clock-rate",
    asks: "did the run's clock advance as fast as the kernel's clock?",
    explains: "Rates and latencies are only as accurate as the clock. The rule compares the \
     length of the measurement on the run's clock with its length on the kernel's clock \
     (/proc/uptime), minus any suspension. Normally, the two lengths differ by hundredths of a \
     second at most. A difference above 1 % and 0.2 s is a failure: a library such as libfaketime, \
     or a tracer, intercepts the clock. A clock at half speed doubles every rate.",
    bears_on: &[
        (Claim::Requirement, Weight::Refuting),
        (Claim::MediaRead, Weight::Refuting),
        (Claim::CachedRead, Weight::Refuting),
        (Claim::BurstWrite, Weight::Refuting),
        (Claim::SustainedWrite, Weight::Refuting),
        (Claim::TailLatency, Weight::Refuting),
        (Claim::Comparative, Weight::Refuting),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let clock = &bundle.observed.clock;
    let (own, kernel) = (clock.own_ns?, clock.kernel_ns?);
    if !evidence::is_real(bundle) {
        return None;
    }
    // Only the kernel's clock includes time in suspension. The rule `was-stopped` reports this
    // time.
    let stopped = clock.stopped_ns.unwrap_or(0);
    let slack = READING_NS.saturating_add((kernel as f64 * SHARE_MAX) as u64);
    let slow = kernel.saturating_sub(own) > slack.saturating_add(stopped);
    let fast = own.saturating_sub(kernel) > slack;
    let finding = if slow || fast {
        let says = format!(
            "the run's clock measured {:.1} s, but the kernel's clock measured {:.1} s",
            own as f64 / NS_PER_S,
            kernel as f64 / NS_PER_S
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("run without libraries or tracers that intercept the clock (see LD_PRELOAD)")
    } else {
        Finding::new(
            RULE.id,
            Outcome::Pass,
            "the run's clock advanced as fast as the kernel's \
         clock",
        )
    };
    Some(finding.with("own_ns", own).with("kernel_ns", kernel))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_clock_that_is_slow_or_fast_fails_and_suspension_does_not() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        let mut of = |own, kernel, stopped| {
            let clock = &mut bundle.observed.clock;
            (clock.own_ns, clock.kernel_ns) = (Some(own), Some(kernel));
            clock.stopped_ns = Some(stopped);
            fixtures::outcome(&RULE, &bundle)
        };
        let second = fixtures::SECOND_NS;
        assert_eq!(of(60 * second, 60 * second, 0), Some(Outcome::Pass));
        assert_eq!(of(60 * second, 60 * second + 800_000_000, 0), Some(Outcome::Pass));
        assert_eq!(of(60 * second, 61 * second, 0), Some(Outcome::Fail));
        assert_eq!(of(60 * second, 61 * second, second), Some(Outcome::Pass));
        assert_eq!(of(60 * second, 75 * second, 0), Some(Outcome::Fail));
        assert_eq!(of(60 * second, 30 * second, 0), Some(Outcome::Fail));
    }

    #[test]
    fn no_requirement_is_met_by_a_slow_clock() {
        let mut bundle = fixtures::reads();
        bundle.plan.claims = vec![Claim::Requirement];
        bundle.observed.clock.own_ns = Some(60 * fixtures::SECOND_NS);
        bundle.observed.clock.kernel_ns = Some(75 * fixtures::SECOND_NS);
        assert_eq!(crate::judge(&bundle).verdict, crate::VerdictKind::Invalid);
    }
}
