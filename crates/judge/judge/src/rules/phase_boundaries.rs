//! Checks that the measurement starts and ends at the recorded times.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Maximum error of the start and end of the measurement, as a fraction of its length. The relative
/// error of the rate is no larger.
const ERROR_SHARE_MAX: f64 = 0.001;

pub const RULE: Rule = Rule {
    id: "phase-boundaries",
    asks: "does the measurement start and end at the recorded times?",
    explains: "All threads start and end the measurement at the same announced times. An operation \
               belongs to the phase in which it completes. If a thread notices the start or the end \
               of the measurement too late, it may count part of the warm-up or drain as \
               measurement. The run records the maximum length of this part. If it exceeds 0.1 % of \
               the measurement, the rate is unknown. This happens if the host's CPUs are \
               overloaded: stop other programs, or measure longer.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let phase = measured(bundle)?;
    if bundle.run.driver == Driver::Foreign {
        return None;
    }
    let Some(error_ns) = phase.boundary_error_ns else {
        let says = "the Plimsoll version of this run did not record the error of the start and end \
                    of the measurement";
        let finding = Finding::new(RULE.id, Outcome::Unknown, says);
        return Some(finding.advise("repeat the run with this version"));
    };
    let share = error_ns as f64 / phase.duration_ns as f64;
    let finding = if share > ERROR_SHARE_MAX {
        let says = format!(
            "the start or end of the measurement may be wrong by up to {:.1} ms, which is {} of the \
             measurement",
            error_ns as f64 / 1e6,
            evidence::percent(share)
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("stop other programs on this host, or measure longer")
    } else if error_ns > 0 {
        let says = format!(
            "the start and the end of the measurement are accurate to {} µs",
            error_ns.div_ceil(1000)
        );
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        Finding::new(RULE.id, Outcome::Pass, "start and end of the measurement are known exactly")
    };
    Some(finding.with("boundary_error_ns", error_ns))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_thousandth_of_the_measurement_is_too_much() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.phases[1].boundary_error_ns = Some(60_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.phases[1].boundary_error_ns = Some(61_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.phases[1].boundary_error_ns = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
    }
}
