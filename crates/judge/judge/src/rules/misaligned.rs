//! Checks that transfers were aligned to blocks of the device.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Block size of current devices (Advanced Format, NAND pages).
const BLOCK_BYTES: u64 = 4096;
/// Maximum share of misaligned transfers.
const SHARE_MAX: f64 = 0.01;
/// Maximum number of device requests per application request. A higher ratio means that requests
/// were split.
const SPLIT_MAX: f64 = 1.2;

pub const RULE: Rule = Rule {
    id: "misaligned",
    asks: "were transfers aligned to the blocks of the device?",
    explains: "A transfer that does not begin and end on a 4 KiB boundary makes the device read, \
               modify and write whole blocks, or touch two blocks instead of one. The rule counts \
               such transfers. It also uses the counters of the device to detect split requests. \
               The rule only warns, because the storage did what was requested.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let share = bundle.observed.workload.misaligned_share?;
    let splits = split(bundle);
    let finding = if share > SHARE_MAX {
        let says = format!(
            "{} of the transfers were not aligned to {BLOCK_BYTES} bytes",
            evidence::percent(share)
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("use sizes and offsets that are multiples of the block size")
    } else if let Some(splits) = splits.filter(|splits| *splits > SPLIT_MAX) {
        let says = format!(
            "the device received {splits:.2} requests for each request of the load: a layer above \
             the device splits requests"
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("check the stripe size and the alignment of the partition")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "transfers were aligned")
    };
    Some(finding.with("misaligned_share", share))
}

/// Returns the number of device requests per operation. `None` unless each transfer fits in one
/// block and no other process used the device.
fn split(bundle: &Bundle) -> Option<f64> {
    let ratio = evidence::read_ratio(bundle)?;
    let small = bundle.observed.workload.size_bytes_max? <= BLOCK_BYTES;
    let requests: u64 = evidence::top_devices(bundle)?.iter().map(|device| device.reads).sum();
    let ours = evidence::operations(bundle, true);
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
