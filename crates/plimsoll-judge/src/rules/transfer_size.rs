//! Do rate, bandwidth and the size of transfers fit each other?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Stream;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Rounding, and sizes mixed by chance.
const SLACK: f64 = 0.05;
/// In results made elsewhere rates may hold a few per cent of operations on names and attributes, and
/// megabytes of either kind.
const SLACK_FOREIGN: f64 = 0.12;

/// The rule.
pub const RULE: Rule = Rule {
    id: "transfer-size",
    asks: "is the bandwidth the rate times the size of a transfer?",
    explains: "Bytes divided by operations give the mean transfer size. The rule compares it with \
        the size that the plan, the job or the table states: more than 5 % apart (12 % in results \
        made elsewhere) means that rate, bandwidth or size belongs to another load. A table whose \
        operations are in part on names and attributes shows it too.",
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
    let [stream] = seen::streams(bundle) else { return None };
    let stated = stated(stream)?;
    let bytes = seen::read_bytes(bundle) + seen::written_bytes(bundle);
    let counted = seen::operations(bundle, true) + seen::operations(bundle, false);
    // What was due and never moved a byte is no transfer; `operations-lost` has it.
    let operations = counted.saturating_sub(seen::unfinished(bundle));
    if operations == 0 {
        return None;
    }
    let mean = bytes as f64 / operations as f64;
    let foreign = bundle.run.driver == Driver::Foreign;
    let slack = if foreign { SLACK_FOREIGN } else { SLACK };
    let finding = if (mean / stated - 1.0).abs() > slack {
        let says = format!(
            "a transfer moved {} on average where {} is stated: bandwidth is not rate × size",
            seen::size(mean as u64),
            seen::size(stated as u64)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out of which load the rate and of which the bandwidth is")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "bandwidth is rate × size")
    };
    Some(finding.with("mean_bytes", mean).with("stated_bytes", stated))
}

/// The one size of all transfers; `None` where sizes are mixed.
fn stated(stream: &Stream) -> Option<f64> {
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

    /// Found by the adversary: an open loop that offers more than is carried.
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
