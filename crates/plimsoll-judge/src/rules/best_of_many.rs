//! Is this the best of many runs?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Earlier runs of the same plan from which a single figure is one of many.
const EARLIER_MIN: u64 = 5;

/// The rule.
pub const RULE: Rule = Rule {
    id: "best-of-many",
    asks: "how many runs of this plan came before, and how many were given up?",
    explains: "The best of seven runs overstated their median by 40 % (measured). Every run enters an \
        append-only ledger whose lines hold the hash of the one before, aborted runs included; the \
        bundle carries its place in it. Five earlier runs of the plan, or one that was given up, are a \
        warning: show them all (`plimsoll runs`), not this one.",
    bears_on: &[(Claim::Requirement, Weight::Advisory), (Claim::Comparative, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let ledger = bundle.run.ledger.as_ref()?;
    let (earlier, given_up) = (ledger.earlier_runs_of_plan, ledger.earlier_runs_not_completed);
    // A plan's own repeats are shown together.
    let repeats = u64::from(bundle.plan.repeat.runs.max(1)) - 1;
    let finding = if earlier >= EARLIER_MIN + repeats || given_up > 0 {
        let says = format!(
            "{earlier} runs of this plan came before on this machine, {given_up} of which did not come \
             to their end"
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("show all of them, or their median: `plimsoll runs` lists them")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("{earlier} runs of this plan came before"))
    };
    Some(finding.with("earlier_runs", earlier).with("earlier_runs_not_completed", given_up))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::run::LedgerPosition;

    use super::super::made_up;
    use super::*;

    #[test]
    fn five_earlier_runs_or_one_given_up_warn() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), None);
        let mut at = |earlier, given_up| {
            bundle.run.ledger = Some(LedgerPosition {
                position: earlier + 1,
                previous_sha256: String::new(),
                earlier_runs_of_plan: earlier,
                earlier_runs_not_completed: given_up,
            });
            made_up::outcome(&RULE, &bundle)
        };
        assert_eq!(at(4, 0), Some(Outcome::Pass));
        assert_eq!(at(5, 0), Some(Outcome::Warn));
        assert_eq!(at(1, 1), Some(Outcome::Warn));
    }
}
