//! Do the runs agree?

use plimsoll_evidence::Bundle;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::stats::repeats;

/// Spread of the runs' rates, maximum less minimum over the mean. SPC-1 and MLPerf Storage hold repeats
/// to 5 %; twice that is what runs of minutes on shared hosts show.
const SPREAD_MAX: f64 = 0.10;

/// The rule.
pub const RULE: ExperimentRule = ExperimentRule {
    id: "spread-between-runs",
    asks: "do the runs agree with each other?",
    explains: "Maximum less minimum of the achieved rates over their mean: more than 10 % between runs \
        of the same plan means that something that is not in the plan decides (SPC-1 and MLPerf Storage \
        hold repeats to 5 %). The mean then needs its interval beside it, and more runs. A comparison \
        names it for each side; whether the sides differ is for the interval of their ratio to say.",
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
    let says = format!("the rates of {} runs lie {:.1} % apart", rates.len(), spread * 100.0);
    let finding = if spread > SPREAD_MAX {
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("find out what differs between the runs, or make more of them")
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
