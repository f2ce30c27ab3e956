//! Is a comparison made from one run?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::words::many;

/// Runs of each side from which a difference can be significant at all: two sides of four have a
/// least possible p of 0.03 (Mann and Whitney), of three 0.10.
const RUNS_MIN: u32 = 4;

/// The rule.
pub const RULE: Rule = Rule {
    id: "one-run-only",
    asks: "does a comparison rest on enough runs?",
    explains: "One run does not show how far runs differ, and a mean without its spread is no basis \
        for a comparison. With three runs on each side the least possible p is 0.10, with four 0.03 \
        (Mann and Whitney's test); five are better, in random order. `[repeat] runs = 5`.",
    bears_on: &[(Claim::Comparative, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !bundle.plan.claims.contains(&Claim::Comparative) {
        return None;
    }
    let runs = bundle.plan.repeat.runs;
    let of_each = many(runs as usize, "run");
    let finding = if runs < RUNS_MIN {
        let says = format!("{of_each} cannot show a difference: {RUNS_MIN} are the least");
        Finding::new(RULE.id, Outcome::Unknown, says).advise("set `[repeat] runs = 5`")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("{of_each} of each"))
    };
    Some(finding.with("runs", runs))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn three_runs_compare_nothing() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.plan.claims = vec![Claim::Comparative];
        bundle.plan.repeat.runs = 3;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.repeat.runs = 4;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
