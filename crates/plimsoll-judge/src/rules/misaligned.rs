//! Was the I/O aligned to the device's blocks?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The block that every device of today has or pretends to have (Advanced Format, NAND pages).
const BLOCK_BYTES: u64 = 4096;
/// Share of transfers off the boundary.
const SHARE_MAX: f64 = 0.01;
/// Requests of the device for each of the application's: more means that they are split.
const SPLIT_MAX: f64 = 1.2;

/// The rule.
pub const RULE: Rule = Rule {
    id: "misaligned",
    asks: "did transfers begin and end on the device's blocks?",
    explains: "A transfer that does not begin and end on a 4 KiB boundary makes the device read, \
        modify and write whole blocks, or touch two blocks instead of one. The rule counts such \
        operations; requests that are split on their way to the device show in its counters. It is a \
        warning only: the storage did what it was asked to do.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) {
        return None;
    }
    let share = bundle.observed.workload.misaligned_share?;
    let splits = split(bundle);
    let finding = if share > SHARE_MAX {
        let says = format!(
            "{} of transfers were off the boundary of {BLOCK_BYTES} bytes",
            seen::percent(share)
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("use sizes and offsets of whole blocks")
    } else if let Some(splits) = splits.filter(|splits| *splits > SPLIT_MAX) {
        let says = format!("the device saw {splits:.2} requests for each of ours: they are split");
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("look at the partition's start and the stripe size")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "transfers were of whole blocks")
    };
    Some(finding.with("misaligned_share", share))
}

/// Requests at the device over operations, where transfers are of one block and nobody else was there.
fn split(bundle: &Bundle) -> Option<f64> {
    let ratio = seen::read_ratio(bundle)?;
    let small = bundle.observed.workload.size_bytes_max? <= BLOCK_BYTES;
    let requests: u64 = seen::top_devices(bundle)?.iter().map(|device| device.reads).sum();
    let ours = seen::operations(bundle, true);
    (small && (0.95..1.05).contains(&ratio) && ours > 0).then(|| requests as f64 / ours as f64)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn transfers_off_the_boundary_warn() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.misaligned_share = Some(0.011);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.observed.workload.misaligned_share = Some(0.01);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn requests_that_are_split_warn() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.size_bytes_max = Some(4096);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].reads *= 2;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }
}
