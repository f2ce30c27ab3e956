//! Checks that every planned run finished.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: ExperimentRule = ExperimentRule {
    id: "runs-missing",
    asks: "did every planned run finish, and were there at least two runs?",
    explains: "A mean of only some of the runs may be a favourable selection. The rule therefore \
        counts planned runs (`[repeat] runs`) that are missing or incomplete. A single run has no \
        spread, so it is unknown how much a repeat would differ. Run the missing runs.",
    bears_on: &[(Claim::Comparative, Weight::Mandatory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let planned = runs.first()?.plan.repeat.runs;
    let completed = runs.iter().filter(|run| run.run.end.kind == EndKind::Completed).count();
    let missing = (planned as usize).saturating_sub(completed);
    let finding = if missing > 0 {
        let says = match planned {
            1 => "the only planned run did not finish".to_owned(),
            _ => format!("{completed} of {planned} planned runs finished"),
        };
        Finding::new(RULE.id, Outcome::Unknown, says).advise("run the missing runs")
    } else if completed < 2 {
        let says = "a single run does not show by how much a repeat would differ";
        Finding::new(RULE.id, Outcome::Unknown, says).advise("set `[repeat] runs = 5`")
    } else {
        let says = format!("all {completed} runs finished");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("planned", planned).with("completed", completed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::super::fixtures;
    use super::*;

    #[test]
    fn a_run_alone_or_a_run_that_is_missing_leaves_it_unknown() {
        let mut bundle = fixtures::reads();
        let outcome = |runs: &[&Bundle]| check(runs).unwrap().outcome;
        assert_eq!(outcome(&[&bundle]), Outcome::Unknown);
        bundle.plan.repeat.runs = 2;
        assert_eq!(outcome(&[&bundle, &bundle]), Outcome::Pass);
        let mut aborted = bundle.clone();
        aborted.run.end.kind = EndKind::Interrupted;
        let finding = check(&[&bundle, &aborted]).unwrap();
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert_eq!(finding.says, "1 of 2 planned runs finished");
        assert!(check(&[]).is_none());
    }
}
