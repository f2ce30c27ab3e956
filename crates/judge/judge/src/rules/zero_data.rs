//! Checks that the data read back was not zero.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Layout;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum share of blocks that contain only zeroes. Real data has some such blocks; generated data
/// has none.
const ZERO_SHARE_MAX: f64 = 0.01;

pub const RULE: Rule = Rule {
    id: "zero-data",
    asks: "did the data read back consist of zeroes?",
    explains: "A system that compresses, deduplicates or detects zeroes does not store them, and \
               does not access a device to read them. Plimsoll reads back a sample of the data. The \
               rule fails if more than 1 % of the blocks (4 KiB) are zero, regardless of what the \
               plan declares. Write incompressible data, which is the default.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::Requirement, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    if let Some(share) = bundle.observed.workload.zero_share {
        let sampled = bundle.observed.workload.blocks_sampled;
        let says = format!(
            "{} of {sampled} blocks read back contained only zeroes",
            evidence::percent(share)
        );
        let outcome = if share > ZERO_SHARE_MAX { Outcome::Fail } else { Outcome::Pass };
        let finding = Finding::new(RULE.id, outcome, says)
            .with("zero_share", share)
            .with("blocks_sampled", sampled);
        return Some(match outcome {
            Outcome::Fail => finding.advise("write non-zero data before reading it"),
            _ => finding,
        });
    }
    let declared = evidence::streams(bundle).iter().find(|s| s.layout == Layout::Zeros)?;
    let says = format!("the plan fills the files of stream {} with zeroes", declared.name);
    Some(
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("remove `layout = \"zeros\"` from the plan"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn zeroes_fail_and_one_block_in_a_hundred_does_not() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.zero_share = Some(0.01);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.zero_share = Some(0.011);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn without_a_sample_the_plan_decides() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.zero_share = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        let mut zeros =
            fixtures::reads_with("queue_depth = 8", "queue_depth = 8\nlayout = \"zeros\"");
        zeros.observed.workload.zero_share = None;
        assert_eq!(fixtures::outcome(&RULE, &zeros), Some(Outcome::Fail));
    }
}
