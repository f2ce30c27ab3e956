//! Checks that the mail store had warmed up.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::PhaseKind;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "warm-up-short",
    asks: "did the warm-up fill the store's cache and write one checkpoint depth of log?",
    explains: "Until the store's page cache is full, reads evict no pages. Until one checkpoint \
               depth has been logged, few dirty pages must be written back. Figures from before \
               that time make the storage look too fast. Set a longer `phases.warm_up`.",
    bears_on: &[
        (Claim::Requirement, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let phase = bundle.run.phases.iter().find(|phase| phase.kind == PhaseKind::WarmUp)?;
    let finding = if phase.reached {
        Finding::new(RULE.id, Outcome::Pass, "the store had warmed up")
    } else {
        let why = match phase.note.as_str() {
            "" => String::new(),
            why => format!(": {why}"),
        };
        let says = format!("the warm-up ended before it was complete{why}");
        // The rate of a store that is still warming up is not a sustained rate. For a requirement,
        // this rule is only advisory.
        Finding::new(RULE.id, Outcome::Unknown, says).advise("set a longer `phases.warm_up`")
    };
    Some(finding.with("warm_up_ns", phase.duration_ns))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_warm_up_that_says_nothing_more_leaves_no_colon_behind() {
        let mut bundle = fixtures::reads();
        let warm_up = bundle.run.phases.iter().position(|p| p.kind == PhaseKind::WarmUp).unwrap();
        bundle.run.phases[warm_up].reached = false;
        bundle.run.phases[warm_up].note = String::new();
        let says = check(&bundle).unwrap().says;
        assert_eq!(says, "the warm-up ended before it was complete");
        bundle.run.phases[warm_up].note = "the cache was half full".to_owned();
        let says = check(&bundle).unwrap().says;
        assert_eq!(says, "the warm-up ended before it was complete: the cache was half full");
    }
}
