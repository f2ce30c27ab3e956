//! Are all runs there that the plan asks for, and more than one?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: ExperimentRule = ExperimentRule {
    id: "runs-missing",
    asks: "did every run that the plan asks for come to its end, and were there at least two?",
    explains: "A mean is over all runs, or it is over those that somebody liked: runs that were planned \
        (`[repeat] runs`) and are not there, or did not complete, are named. One run alone shows no \
        spread. It is unknown then what a repeat would show. Run the missing ones.",
    bears_on: &[(Claim::Comparative, Weight::Mandatory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let planned = runs.first()?.plan.repeat.runs;
    let completed = runs.iter().filter(|run| run.run.end.kind == EndKind::Completed).count();
    let missing = (planned as usize).saturating_sub(completed);
    let finding = if missing > 0 {
        let says = match planned {
            1 => "the one run that was planned did not come to its end".to_owned(),
            _ => format!("of {planned} runs that were planned, {completed} came to their end"),
        };
        Finding::new(RULE.id, Outcome::Unknown, says).advise("run the missing ones too")
    } else if completed < 2 {
        let says = "one run shows nothing of what a repeat of it would show";
        Finding::new(RULE.id, Outcome::Unknown, says).advise("set `[repeat] runs = 5`")
    } else {
        let says = format!("all {completed} runs came to their end");
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
        assert_eq!(finding.says, "of 2 runs that were planned, 1 came to their end");
        assert!(check(&[]).is_none());
    }
}
