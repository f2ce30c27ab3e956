//! Rules over the runs of one experiment together.

use plimsoll_evidence::Bundle;

use super::Weight;
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::stats::repeats;

/// Spread of the runs' rates, maximum less minimum over the mean. SPC-1 and MLPerf Storage hold repeats
/// to 5 %; twice that is what runs of minutes on shared hosts show.
const SPREAD_MAX: f64 = 0.10;

/// A rule over several runs.
#[derive(Clone, Copy)]
pub struct ExperimentRule {
    /// Identifier.
    pub id: &'static str,
    /// What it asks, in one line.
    pub asks: &'static str,
    /// What it means, how it is found, what to do.
    pub explains: &'static str,
    /// The claims it bears on.
    pub bears_on: &'static [(Claim, Weight)],
    /// Looks at the runs; `None` where the rule does not apply.
    pub check: fn(&[&Bundle]) -> Option<Finding>,
}

/// All of them.
pub const ALL: &[ExperimentRule] = &[PLAN_CHANGED, SPREAD];

/// Was it the same plan throughout?
pub const PLAN_CHANGED: ExperimentRule = ExperimentRule {
    id: "plan-changed",
    asks: "did all runs of the experiment follow the same plan, with the same tool on the same host?",
    explains: "Runs are repeats of each other only where plan, version of the tool, kernel and host are \
        the same: the plan's SHA-256 is in each bundle. What differs is named; a mean over runs of \
        different plans is a failure.",
    bears_on: &[(Claim::Requirement, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check: plan_changed,
};

/// Do the runs agree?
pub const SPREAD: ExperimentRule = ExperimentRule {
    id: "spread-between-runs",
    asks: "do the runs agree with each other?",
    explains: "Maximum less minimum of the achieved rates over their mean: more than 10 % between runs \
        of the same plan means that something that is not in the plan decides (SPC-1 and MLPerf Storage \
        hold repeats to 5 %). It leaves comparisons undecided.",
    bears_on: &[(Claim::Comparative, Weight::Mandatory), (Claim::Requirement, Weight::Advisory)],
    check: spread,
};

fn plan_changed(runs: &[&Bundle]) -> Option<Finding> {
    let (first, others) = runs.split_first().filter(|(_, others)| !others.is_empty())?;
    let differs = |of: for<'a> fn(&'a Bundle) -> Option<&'a str>| {
        others.iter().any(|run| of(run) != of(first))
    };
    type Of = fn(&Bundle) -> Option<&str>;
    let what: [(&str, Of); 4] = [
        ("the plan", |b| Some(&b.run.plan_sha256)),
        ("the tool's version", |b| Some(&b.run.tool_version)),
        ("the host", |b| b.environment.host.as_deref()),
        ("the kernel", |b| b.environment.kernel.as_deref()),
    ];
    let changed: Vec<&str> =
        what.iter().filter(|(_, of)| differs(*of)).map(|(name, _)| *name).collect();
    Some(if changed.is_empty() {
        let says = format!("{} runs of one plan on one host", runs.len());
        Finding::new(PLAN_CHANGED.id, Outcome::Pass, says)
    } else {
        let says = format!("{} changed between the runs", changed.join(" and "));
        Finding::new(PLAN_CHANGED.id, Outcome::Fail, says)
            .advise("run all of them again under one plan, without changing anything between")
    })
}

fn spread(runs: &[&Bundle]) -> Option<Finding> {
    let rates: Vec<f64> =
        runs.iter().filter_map(|run| figures::rate_per_s(run, Pick::Transactional)).collect();
    if rates.len() < 2 {
        return None;
    }
    let spread = repeats(&rates).ok()?.spread?;
    let says = format!("the rates of {} runs lie {:.1} % apart", rates.len(), spread * 100.0);
    let finding = if spread > SPREAD_MAX {
        Finding::new(SPREAD.id, Outcome::Unknown, says)
            .advise("find out what differs between the runs, or make more of them")
    } else {
        Finding::new(SPREAD.id, Outcome::Pass, says)
    };
    Some(finding.with("spread", spread))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::made_up;
    use super::*;

    #[test]
    fn another_plan_or_kernel_is_named() {
        let (one, mut two) = (made_up::reads(), made_up::reads());
        assert!(plan_changed(&[&one]).is_none());
        assert_eq!(plan_changed(&[&one, &two]).unwrap().outcome, Outcome::Pass);
        two.run.plan_sha256 = "other".into();
        two.environment.kernel = Some("7.0".into());
        let finding = plan_changed(&[&one, &two]).unwrap();
        assert_eq!(finding.outcome, Outcome::Fail);
        assert_eq!(finding.says, "the plan and the kernel changed between the runs");
    }

    #[test]
    fn runs_that_lie_apart_decide_nothing() {
        let (one, mut two) = (made_up::reads(), made_up::reads());
        two.run.classes[0].count = two.run.classes[0].count / 100 * 109;
        assert_eq!(spread(&[&one, &two]).unwrap().outcome, Outcome::Pass);
        two.run.classes[0].count = one.run.classes[0].count / 100 * 112;
        assert_eq!(spread(&[&one, &two]).unwrap().outcome, Outcome::Unknown);
        assert!(spread(&[&one]).is_none());
    }
}
