//! Checks that a measurement with `until-steady` reached a steady rate.

use plimsoll_evidence::Bundle;

use super::{ALL_OF_STORAGE, Rule};
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::steady;

pub const RULE: Rule = Rule {
    id: "never-settled",
    asks: "did the run become steady, as `until-steady` requires?",
    explains: "With `measure = \"until-steady\"` the measured phase ends when the rate meets SNIA's \
               criteria (PTS 2.0.2). Plimsoll removes the warm-up and divides the remaining time \
               into five equal parts. The rates of the parts must differ by at most 20 % of their \
               mean and drift by at most 10 %. The uncertainty of the mean must be at most 5 %. A \
               load with writes must have written the working set at least twice in total, and at \
               least once during these five parts. If the phase reaches its maximum length first, \
               the run is INCONCLUSIVE. Look at the chart of the rate. Measure longer, or find out \
               why the rate keeps changing.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if !bundle.plan.phases.until_steady {
        return None;
    }
    let found = steady::of(bundle);
    Some(if found.steady == Some(true) {
        let [low, high] = found.interval_per_s.unwrap_or_default();
        let says = format!("the rate was steady: {low:.1}/s to {high:.1}/s");
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        Finding::new(RULE.id, Outcome::Unknown, found.says)
            .advise("raise `phases.measure_max`, or find out why the rate keeps changing")
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_rate_that_settles_passes_and_one_that_rises_to_the_cap_does_not() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None, "a fixed length waits for nothing");
        bundle.plan.phases.until_steady = true;
        bundle.plan.phases.round_ns = 10 * fixtures::SECOND_NS;
        bundle.plan.phases.measure_ns = bundle.run.measure().unwrap().duration_ns;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        // Case: the driver ended before the last rows of its series arrived.
        let mut cut = bundle.clone();
        for phase in &mut cut.run.phases {
            (phase.reached, phase.note) = (false, "never became steady: too few values".into());
        }
        let finding = fixtures::finding(&RULE, &cut);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert_eq!(finding.says, "it never became steady: too few values");
        fixtures::rates(&mut bundle, |t| (1_000 + t * 10 + t * 7 % 11, 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        assert!(fixtures::finding(&RULE, &bundle).says.contains("never became steady"));
    }
}
