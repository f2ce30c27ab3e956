//! Compares the rate of random operations with the maximum rate of rotating disks, if the plan
//! declares such disks.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::PATTERN_NOT_STATED;
use plimsoll_plan::{Media, Pattern};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::{NS_PER_S, measured};
use crate::finding::{Finding, Outcome};

/// Minimum time of a random operation on a rotating disk. Half a rotation at 15,000 rpm takes 2 ms.
/// Sorting the queue by head position reduces this time, but never to half.
const OPERATION_NS: f64 = 1_000_000.0;
/// Number of busy disks above which the rule warns, computed with 1 ms per operation. Real disks
/// take 2 ms per operation, so twice as many disks would be busy.
const DISKS_WARN: f64 = 200.0;
/// Maximum plausible number of busy disks. The largest published systems have some thousand
/// rotating disks.
const DISKS_MAX: f64 = 2_000.0;
/// Tolerance of the comparison with the number of operations in flight.
const SLACK: f64 = 1.1;

pub const RULE: Rule = Rule {
    id: "seeks-exceeded",
    asks: "can the declared rotating disks sustain this rate of random operations?",
    explains: "This rule applies if the plan declares rotating disks (`observe.media = \"hdd\"`). \
               Each random operation occupies a disk for half a revolution (2 ms at 15,000 rpm), \
               and for at least 1 ms with the best request order. The rate multiplied by 1 ms is \
               therefore the minimum number of busy disks. For reads, the number of busy disks \
               cannot exceed the number of operations in flight. Writes may wait in a persistent \
               cache, so for writes the rule checks only the number of disks. The rule warns above \
               200 busy disks and fails above 2,000: either a cache absorbed the operations, or the \
               media are not rotating disks.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.plan.observe.media != Some(Media::Hdd) || !evidence::is_real(bundle) {
        return None;
    }
    let streams = evidence::streams(bundle);
    let random =
        |s: &plimsoll_plan::Stream| matches!(s.pattern, Pattern::Random | Pattern::Permutation);
    let unstated = bundle.run.counters.contains_key(PATTERN_NOT_STATED);
    if streams.is_empty() || !streams.iter().all(random) || unstated {
        return None;
    }
    let seconds = measured(bundle)?.duration_ns as f64 / NS_PER_S;
    let operations = evidence::operations(bundle, true) + evidence::operations(bundle, false);
    let rate = operations as f64 / seconds;
    let disks = rate * OPERATION_NS / NS_PER_S;
    // Without writes, the number of busy disks cannot exceed the number of operations in flight.
    let reads_alone = evidence::operations(bundle, false) == 0;
    let depth = super::littles_law::outstanding(bundle).filter(|_| reads_alone);
    let depth = depth.map(|count| count as f64);
    let beyond_depth = depth.is_some_and(|depth| disks > depth * SLACK);
    let text = format!(
        "{rate:.0} random operations/s keep at least {disks:.0} rotating disks busy (1 ms per \
         operation)"
    );
    let finding = if beyond_depth {
        let says =
            format!("{text}, but only {:.0} operations were in flight", depth.unwrap_or(0.0));
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out whether a cache or faster media served the operations")
    } else if disks > DISKS_MAX {
        Finding::new(
            RULE.id,
            Outcome::Fail,
            format!("{text}: no storage system has that many disks"),
        )
        .advise("find out whether a cache or faster media served the operations")
    } else if disks > DISKS_WARN {
        Finding::new(RULE.id, Outcome::Warn, text)
            .advise("check whether the storage has this many disks")
    } else {
        Finding::new(RULE.id, Outcome::Pass, text)
    };
    Some(finding.with("disks", disks).with("rate_per_s", rate))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &plimsoll_evidence::Bundle, per_s: u64) -> Option<Outcome> {
        let mut bundle = bundle.clone();
        bundle.plan.observe.media = Some(Media::Hdd);
        bundle.run.classes[0].count = per_s * fixtures::SECONDS;
        fixtures::outcome(&RULE, &bundle)
    }

    #[test]
    fn reads_are_held_to_their_depth_and_all_to_the_number_of_disks() {
        // The load has eight operations in flight.
        assert_eq!(outcome(&fixtures::reads(), 8_000), Some(Outcome::Pass));
        assert_eq!(outcome(&fixtures::reads(), 9_000), Some(Outcome::Fail));
        assert_eq!(outcome(&fixtures::writes(), 9_000), Some(Outcome::Pass));
        assert_eq!(outcome(&fixtures::writes(), 201_000), Some(Outcome::Warn));
        assert_eq!(outcome(&fixtures::writes(), 4_000_000), Some(Outcome::Fail));
    }

    #[test]
    fn flash_sequential_and_unstated_patterns_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None);
        let to = "reads = 0\npatterns = \"sequential\"";
        assert_eq!(outcome(&fixtures::writes_with("reads = 0", to), 4_000_000), None);
        let mut bundle = fixtures::writes();
        bundle.run.counters.insert(PATTERN_NOT_STATED.into(), 1);
        assert_eq!(outcome(&bundle, 4_000_000), None);
    }
}
