//! Checks that all hosts or jobs ran at the same time.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum share of the total time during which all hosts or jobs must have run.
const TOGETHER_MIN: f64 = 0.95;

pub const RULE: Rule = Rule {
    id: "issuers-together",
    asks: "did all hosts or jobs start and stop together?",
    explains: "The rates of several hosts or jobs add up only for the time in which all of them \
               ran. The rule compares the time from the last start to the first end with the time \
               from the first start to the last end. If the ratio is below 95 %, the sum includes \
               loads that did not run at the same time. Use a barrier at the start, and the same \
               duration for all hosts or jobs.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let issuers = &bundle.observed.issuers;
    if issuers.len() < 2 {
        return None;
    }
    let starts = issuers.iter().map(|issuer| issuer.start_ns);
    let ends = issuers.iter().map(|issuer| issuer.end_ns);
    let (first, last) = (starts.clone().min()?, ends.clone().max()?);
    let together_ns = ends.min()?.saturating_sub(starts.max()?);
    let share = together_ns as f64 / last.saturating_sub(first).max(1) as f64;
    let says = format!(
        "all {} load generators ran at the same time for {} of the total time",
        issuers.len(),
        evidence::percent(share)
    );
    let finding = if share < TOGETHER_MIN {
        Finding::new(RULE.id, Outcome::Fail, format!("{says}, so their rates do not add up"))
            .advise(
                "start all load generators at a barrier, and give all of them the same duration",
            )
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("together_ns", together_ns).with("together_share", share))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::Issuer;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_late_starter_fails_beyond_five_percent() {
        let mut bundle = fixtures::reads();
        let issuer = |start_s: u64| Issuer {
            name: format!("job{start_s}"),
            start_ns: start_s * fixtures::SECOND_NS,
            end_ns: 100 * fixtures::SECOND_NS,
        };
        bundle.observed.issuers = vec![issuer(0)];
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.observed.issuers = vec![issuer(0), issuer(5)];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.issuers = vec![issuer(0), issuer(6)];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }
}
