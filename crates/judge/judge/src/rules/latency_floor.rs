//! Compares the read latency with the lowest latency that this class of device can reach.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{Media, Pattern};

use super::{Rule, Weight, evidence, latencies};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum read latency of any storage. The fastest device (3D XPoint on NVMe) takes 7 to 10 us
/// through the kernel. A copy from the page cache takes 1 to 3 us.
const ANY_FLOOR_NS: u64 = 5_000;
/// Minimum read latency of flash. Reading a NAND page takes 20 to 100 us (manufacturers' data
/// sheets).
const FLASH_FLOOR_NS: u64 = 15_000;
/// Minimum mean latency of random reads on a rotating disk: half a revolution at 15,000 rpm.
const DISK_FLOOR_NS: u64 = 2_000_000;

pub const RULE: Rule = Rule {
    id: "latency-floor",
    asks: "is the latency lower than the device can achieve?",
    explains: "The rule compares the median read latency (the mean, if no distribution is known) \
               with a floor: 5 us for any storage, 15 us for flash (a NAND page takes 20 to 100 us \
               to read), 2 ms for random reads on rotating disks (half a revolution at 15,000 rpm). \
               A lower latency means that the data did not come from the device. The plan declares \
               the class of device in `observe.media`, because the kernel's description of virtual \
               disks is unreliable. The rule does not fail for another tool's result with buffered \
               I/O if its user makes no claim about the media: such jobs read from the page cache \
               by design.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let typical = latencies::typical(bundle, true)?;
    let (needs, floor_ns) = match bundle.plan.observe.media {
        Some(Media::Memory) => return None,
        Some(Media::Hdd) if random(bundle) => ("rotating disks take", DISK_FLOOR_NS),
        Some(Media::Ssd | Media::Nvme) => ("flash takes", FLASH_FLOOR_NS),
        _ => ("even the fastest storage takes", ANY_FLOOR_NS),
    };
    let (kind, is, floor) = (typical.kind, typical.ns as f64 / 1e3, floor_ns as f64 / 1e3);
    let finding = if typical.ns >= floor_ns {
        let says = format!("the {kind} read took {is:.0} us; {needs} at least {floor:.0} us");
        Finding::new(RULE.id, Outcome::Pass, says)
    } else if claims_no_media(bundle) {
        let says = format!(
            "the {kind} read took {is:.1} us, less than the {floor:.0} us that {needs}: the page \
             cache answered, and the rate is not the device's"
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("measure with direct I/O, or claim `cached-read`")
    } else {
        let says = format!("the {kind} read took {is:.1} us, but {needs} at least {floor:.0} us");
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out whether the data came from a cache, from holes or from zeroed blocks")
    };
    Some(finding.with("typical_ns", typical.ns).with("floor_ns", floor_ns))
}

/// Returns true for another tool's result with buffered I/O if its user makes no claim about the
/// media.
fn claims_no_media(bundle: &Bundle) -> bool {
    bundle.run.driver == Driver::Foreign
        && bundle.plan.claims_assumed
        && !evidence::buffered_paths(bundle).is_empty()
}

fn random(bundle: &Bundle) -> bool {
    evidence::streams(bundle)
        .iter()
        .all(|s| matches!(s.pattern, Pattern::Random | Pattern::Permutation))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn microseconds_are_memory_and_a_disk_needs_milliseconds() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.plan.observe.media = Some(Media::Hdd);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.plan.observe.media = None;
        bundle.latency.clear();
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].count * 4_999;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].count * 5_000;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.plan.observe.media = Some(Media::Nvme);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_buffered_result_of_another_tool_claims_no_media() {
        let mut bundle = fixtures::reads();
        bundle.latency.clear();
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].count * 950;
        (bundle.run.driver, bundle.plan.claims_assumed) = (Driver::Foreign, true);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.engine.paths[0].direct = false;
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.starts_with("the mean read took 0.9 us"), "{}", finding.says);
        bundle.plan.claims_assumed = false;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn writes_are_taken_by_memory_everywhere_and_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None);
    }
}
