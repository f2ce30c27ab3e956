//! Checks that a comparison has enough runs.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::words::many;

/// Minimum number of runs per side for a significant difference. With four runs per side, the
/// smallest possible p is 0.03 (Mann-Whitney); with three runs it is 0.10.
const RUNS_MIN: u32 = 4;

pub const RULE: Rule = Rule {
    id: "one-run-only",
    asks: "does the comparison have enough runs?",
    explains: "A comparison requires the variation between runs as well as the mean, and a single \
               run does not show this variation. With three runs per side the smallest possible p \
               is 0.10, with four runs 0.03 (Mann-Whitney test). Five runs in random order are \
               better: `[repeat] runs = 5`.",
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
        let says = format!(
            "{of_each} per side cannot show a difference: at least {RUNS_MIN} runs per side are \
             needed"
        );
        Finding::new(RULE.id, Outcome::Unknown, says).advise("set `[repeat] runs = 5`")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("{of_each} per side"))
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
