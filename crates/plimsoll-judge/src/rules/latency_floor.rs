//! Is the latency below what the class of device can do?

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Media, Pattern};

use super::{Rule, Weight, reads, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// No storage device answers sooner: the fastest (3D XPoint on NVMe) takes 7 to 10 us with the
/// kernel's path, and a copy out of the page cache 1 to 3 us.
const ANY_FLOOR_NS: u64 = 5_000;
/// Reading a NAND page takes 20 to 100 us (manufacturers' data sheets).
const FLASH_FLOOR_NS: u64 = 15_000;
/// Half a turn at 15,000 rpm: a disk's mean at random addresses is never less.
const DISK_FLOOR_NS: u64 = 2_000_000;

/// The rule.
pub const RULE: Rule = Rule {
    id: "latency-floor",
    asks: "is the latency lower than the device can be?",
    explains: "The median read latency is compared with a floor: 5 us for anything that is storage, \
        15 us for flash (a NAND page takes 20 to 100 us to read), 2 ms for random reads of rotating \
        disks (half a turn at 15,000 rpm). A lower median means that the data came from somewhere \
        else. The class is the one that the plan declares (`observe.media`): what the kernel says of \
        virtual disks is not to be trusted.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) {
        return None;
    }
    let typical_ns = reads::typical_ns(bundle, true)?;
    let (needs, floor_ns) = match bundle.plan.observe.media {
        Some(Media::Memory) => return None,
        Some(Media::Hdd) if random(bundle) => ("rotating disks need", DISK_FLOOR_NS),
        Some(Media::Ssd | Media::Nvme) => ("flash needs", FLASH_FLOOR_NS),
        _ => ("even the fastest storage needs", ANY_FLOOR_NS),
    };
    let (is, floor) = (typical_ns as f64 / 1e3, floor_ns as f64 / 1e3);
    let finding = if typical_ns < floor_ns {
        let says = format!(
            "half of the reads took {is:.1} us or less, and {needs} {floor:.0} us at least"
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("look at what answered: a cache, holes, zeroes")
    } else {
        let says = format!("half of the reads took {is:.0} us or more: {needs} {floor:.0} us");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("typical_ns", typical_ns).with("floor_ns", floor_ns))
}

fn random(bundle: &Bundle) -> bool {
    seen::streams(bundle)
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
    fn writes_are_taken_by_memory_everywhere_and_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None);
    }
}
