//! Checks that the rates of the runs agree.

use plimsoll_evidence::Bundle;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::stats::repeats;

/// Maximum spread of the rates: the difference between maximum and minimum, divided by the mean.
/// SPC-1 and MLPerf Storage allow a spread of 5 % between repeats. Runs of a few minutes on shared
/// hosts have twice this spread.
const SPREAD_MAX: f64 = 0.10;

pub const RULE: ExperimentRule = ExperimentRule {
    id: "spread-between-runs",
    asks: "do the rates of the runs agree?",
    explains: "The spread is the difference between the largest and smallest rate, divided by the \
        mean rate. If it is more than 10 % between runs of one plan, something outside the plan \
        affects the rate. (SPC-1 and MLPerf Storage allow 5 % between repeats.) In this case, \
        report the mean with its confidence interval, and make more runs. A comparison lists the \
        spread of each side; the confidence interval of the ratio decides whether the sides \
        differ.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let rates: Vec<f64> =
        runs.iter().filter_map(|run| figures::rate_per_s(run, Pick::Transactional)).collect();
    if rates.len() < 2 {
        return None;
    }
    let spread = repeats(&rates).ok()?.spread?;
    let says = format!("the rates of {} runs differ by {:.1} %", rates.len(), spread * 100.0);
    let finding = if spread > SPREAD_MAX {
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("find out what differs between the runs, or make more runs")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("spread", spread))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::super::fixtures;
    use super::*;

    #[test]
    fn runs_that_lie_apart_decide_nothing() {
        let (one, mut two) = (fixtures::reads(), fixtures::reads());
        two.run.classes[0].count = two.run.classes[0].count / 100 * 109;
        assert_eq!(check(&[&one, &two]).unwrap().outcome, Outcome::Pass);
        two.run.classes[0].count = one.run.classes[0].count / 100 * 112;
        assert_eq!(check(&[&one, &two]).unwrap().outcome, Outcome::Unknown);
        assert!(check(&[&one]).is_none());
    }
}
