//! Checks that no run is a copy of another run.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: ExperimentRule = ExperimentRule {
    id: "runs-copied",
    asks: "is each run a separate measurement?",
    explains: "Copies of a run have no spread, so a difference that was measured only once seems \
     certain. Two different runs on real storage never have the same operations, bytes and \
     latencies in every interval. Two runs that are equal in this way are copies, regardless of \
     their names. Runs on a model may be identical, because virtual time is deterministic. Remove \
     the copies.",
    bears_on: &[(Claim::Requirement, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check,
};

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let real = |run: &&&Bundle| run.run.driver != Driver::Model && !run.series.is_empty();
    let real: Vec<&Bundle> = runs.iter().filter(real).copied().collect();
    if real.len() < 2 {
        return None;
    }
    let copy = real.iter().enumerate().find_map(|(at, run)| {
        let earlier = real[..at].iter().find(|earlier| earlier.series == run.series)?;
        Some((&earlier.run.run_id, &run.run.run_id))
    });
    Some(match copy {
        None => Finding::new(RULE.id, Outcome::Pass, "no run is a copy of another run"),
        Some((one, other)) => {
            let says = format!(
                "{one} and {other} are identical in every interval: one of them is \
                a copy"
            );
            Finding::new(RULE.id, Outcome::Fail, says).advise("remove the copies")
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::super::fixtures;
    use super::*;

    #[test]
    fn a_run_under_another_name_is_a_copy_unless_it_is_of_a_model() {
        let (one, mut two) = (fixtures::reads(), fixtures::reads());
        two.run.run_id = "another".into();
        assert!(check(&[&one]).is_none());
        let finding = check(&[&one, &two]).unwrap();
        assert_eq!(finding.outcome, Outcome::Fail);
        assert_eq!(
            finding.says,
            "run and another are identical in every interval: one of them is a copy"
        );
        two.series.swap(0, 1);
        assert_eq!(check(&[&one, &two]).unwrap().outcome, Outcome::Pass);
        let mut model = one.clone();
        model.run.driver = Driver::Model;
        assert!(check(&[&model, &model]).is_none());
    }
}
