//! Checks that the bandwidth is the rate × the transfer size.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Stream;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Tolerance for rounding and for random mixes of sizes.
const SLACK: f64 = 0.05;
/// Tolerance for results of other tools. Their rates may include a few per cent of metadata
/// operations, and their megabytes may be decimal or binary.
const SLACK_FOREIGN: f64 = 0.12;

pub const RULE: Rule = Rule {
    id: "transfer-size",
    asks: "is the bandwidth equal to the rate times the transfer size?",
    explains: "Bytes divided by operations give the mean transfer size. The rule compares it with \
               the size in the plan, job or table. If the two sizes differ by more than 5 % (12 % \
               in results of other tools), the rate, the bandwidth and the size do not belong to \
               the same load. In a table, the difference may also mean that some of the operations \
               access only names and attributes.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::CachedRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let [stream] = evidence::streams(bundle) else { return None };
    let stated = uniform_size(stream)?;
    let bytes = evidence::read_bytes(bundle) + evidence::written_bytes(bundle);
    let counted = evidence::operations(bundle, true) + evidence::operations(bundle, false);
    // Operations that transferred no data because they never completed are not counted;
    // `operations-lost` judges them.
    let operations = counted.saturating_sub(evidence::unfinished(bundle));
    if operations == 0 {
        return None;
    }
    let mean = bytes as f64 / operations as f64;
    let foreign = bundle.run.driver == Driver::Foreign;
    let slack = if foreign { SLACK_FOREIGN } else { SLACK };
    let finding = if (mean / stated - 1.0).abs() > slack {
        let says = format!(
            "the mean transfer size was {}, but the stated size is {}: the bandwidth is not rate × \
             size",
            evidence::size(mean as u64),
            evidence::size(stated as u64)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out which load the rate and the bandwidth belong to")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "the bandwidth is rate × size")
    };
    Some(finding.with("mean_bytes", mean).with("stated_bytes", stated))
}

/// Returns the transfer size if all transfers have the same size, otherwise `None`.
fn uniform_size(stream: &Stream) -> Option<f64> {
    match (&stream.sizes[..], &stream.write_sizes[..]) {
        ([only], []) => Some(only.size_bytes as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn bytes_must_be_operations_times_size() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let bytes = bundle.run.classes[0].size_bytes;
        bundle.run.classes[0].size_bytes = bytes / 100 * 94;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.classes[0].size_bytes = bytes / 100 * 96;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    /// Operations that never started transferred no bytes. Here the rate of an open loop exceeds
    /// the capacity of the storage.
    #[test]
    fn what_was_never_started_moved_nothing() {
        let mut bundle = fixtures::reads();
        let class = &mut bundle.run.classes[0];
        let waiting = class.count / 2;
        class.count += waiting;
        class.drained += waiting;
        (class.abandoned, class.never_started) = (Some(0), Some(waiting));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
