//! Compares the observed access pattern with the planned one.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Pattern, Stream};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum share of consecutive operations in random I/O. Measured on block traces: 0.000 random,
/// 0.969 sequential.
const RANDOM_SHARE_MAX: f64 = 0.2;
/// Minimum share of consecutive operations in sequential I/O.
const SEQUENTIAL_SHARE_MIN: f64 = 0.8;

pub const RULE: Rule = Rule {
    id: "pattern-other",
    asks: "were operations random or sequential, as planned?",
    explains: "For each client the rule counts the operations that begin where the previous one \
               ended. Uniform random addresses give almost none, sequential ones almost all. \
               Sequential access instead of random flatters disks and everything that reads ahead; \
               random access instead of sequential hides their speed. If a tool does not report \
               this, the rule uses merged requests at the device.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let profile = &bundle.observed.workload;
    // Several streams mix their patterns in one figure.
    let [stream] = evidence::streams(bundle) else { return None };
    let random = is_random(stream)?;
    let sides =
        [("reads", profile.read_sequential_share), ("writes", profile.write_sequential_share)];
    let known: Vec<(&str, f64)> =
        sides.into_iter().filter_map(|(name, share)| Some((name, share?))).collect();
    if known.is_empty() && !evidence::is_real(bundle) {
        return None;
    }
    if known.is_empty() {
        let says = "whether operations were random or sequential was not observed";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says).advise(evidence::how_to_observe(bundle)),
        );
    }
    let wrong = known.iter().find(|(_, share)| {
        if random { *share > RANDOM_SHARE_MAX } else { *share < SEQUENTIAL_SHARE_MIN }
    });
    let word = if random { "random" } else { "sequential" };
    let finding = match wrong {
        Some((name, share)) => {
            let says = format!(
                "{} of the {name} continued where the previous one ended; the plan says {word}",
                evidence::percent(*share)
            );
            Finding::new(RULE.id, Outcome::Fail, says).advise(
                "check which operations the tool \
                issued",
            )
        }
        None => Finding::new(
            RULE.id,
            Outcome::Pass,
            format!(
                "operations were {word} as \
            declared"
            ),
        ),
    };
    Some(known.into_iter().fold(finding, |finding, (name, share)| {
        finding.with(&format!("{name}_sequential_share"), share)
    }))
}

/// Returns true for random streams, false for sequential ones, and `None` for other patterns.
fn is_random(stream: &Stream) -> Option<bool> {
    match stream.pattern {
        Pattern::Random | Pattern::Permutation => {
            // In a space of only a few transfers, random operations are often consecutive.
            let space = stream.files.working_set_bytes.or(stream.files.total_bytes());
            let largest = stream.sizes.iter().map(|s| s.size_bytes).max().unwrap_or(0);
            space.is_none_or(|bytes| bytes >= largest.saturating_mul(1024)).then_some(true)
        }
        Pattern::Sequential | Pattern::SequentialShared => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn random_that_is_sequential_fails_both_ways_round() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.read_sequential_share = Some(0.969);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        let to = "reads = 100\npatterns = \"sequential\"";
        let mut bundle = fixtures::reads_with("reads = 100", to);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.workload.read_sequential_share = Some(0.81);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.read_sequential_share = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn patterns_that_are_neither_are_not_asked() {
        let to = "reads = 100\npatterns = \"zipf\"";
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads_with("reads = 100", to)), None);
    }
}
