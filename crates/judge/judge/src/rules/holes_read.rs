//! Detects reads of holes and of space that was never written.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{Layout, Workload};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum share of unwritten space in the files. Fully written files have no holes, but some file
/// systems allocate an unwritten extent after the end of a file.
const EMPTY_SHARE_MAX: f64 = 0.01;
/// Minimum ratio of the bytes read from the underlying disk to the bytes read from a loop device.
const BELOW_RATIO_MIN: f64 = 0.5;

pub const RULE: Rule = Rule {
    id: "holes-read",
    asks: "did reads go to blocks that were never written?",
    explains: "A file system returns zeroes for reads of holes and of allocated but unwritten \
               space, without accessing a device. (Measured: 1.10 million reads/s from a file made \
               with fallocate, but only 63 thousand reads/s after that file was written.) The block \
               count of a file (st_blocks) does not show unwritten space, but its extents do. \
               Plimsoll lists the extents (FIEMAP, SEEK_HOLE) when the measurement starts. For loop \
               devices, it also checks the backing file for holes. The rule fails if more than 1 % \
               of the space was never written. Write the whole file once before reading it: `layout \
               = \"written\"`, the default.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::Requirement, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::CachedRead, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if evidence::operations(bundle, true) == 0 {
        return None;
    }
    if !evidence::is_real(bundle) {
        return by_its_own_counters(bundle);
    }
    judge_files(bundle).filter(|finding| finding.outcome == Outcome::Fail).or_else(|| {
        let backing = judge_backing_files(bundle);
        match (backing, judge_files(bundle)) {
            (Some(backing), _) if backing.outcome == Outcome::Fail => Some(backing),
            (_, Some(files)) => Some(files),
            (backing, None) => backing,
        }
    })
}

/// Judges a simulated system, which itself counts the reads of unwritten space.
fn by_its_own_counters(bundle: &Bundle) -> Option<Finding> {
    let from = &bundle.observed.sources.reads_from;
    let all: f64 = from.values().sum();
    if all <= 0.0 {
        return None;
    }
    let share = from.get("zero").copied().unwrap_or(0.0) / all;
    let finding = if share > EMPTY_SHARE_MAX {
        let says = format!(
            "{} of the reads returned zeroes without a device access",
            evidence::percent(share)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("write the files in full before reading them (`layout = \"written\"`)")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "reads went to written data")
    };
    Some(finding.with("empty_share", share))
}

fn judge_files(bundle: &Bundle) -> Option<Finding> {
    // A mail store reserves space for growth but reads only pages that it wrote.
    let store = matches!(bundle.plan.workload, Workload::Mailbox(_));
    if store && bundle.run.driver == Driver::Real {
        return judge_unlisted_files(bundle);
    }
    let Some(extents) = &bundle.observed.extents else { return judge_unlisted_files(bundle) };
    // A file that has no data now cannot be the file that the run read.
    let Some(empty) = evidence::empty_share(extents) else { return judge_unlisted_files(bundle) };
    let (holes, unwritten) = (extents.hole_bytes, extents.unwritten_bytes);
    let finding = if empty > EMPTY_SHARE_MAX {
        let says = format!(
            "{} of the files' {} was never written ({} in holes, {} allocated but unwritten): reads \
             of this space never reach a device",
            evidence::percent(empty),
            evidence::size(extents.size_bytes),
            evidence::size(holes),
            unwritten.map_or_else(|| "an unknown number of bytes".to_owned(), evidence::size),
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("write the files in full before reading them (`layout = \"written\"`)")
    } else if unwritten.is_none() {
        let says =
            "the files have no holes, but it is unknown whether their space was ever written";
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("use a file system that lists extents (FIEMAP)")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "all data that was read had been written before")
    };
    let finding = finding
        .with("size_bytes", extents.size_bytes)
        .with("hole_bytes", holes)
        .with("empty_share", empty);
    Some(match unwritten {
        Some(bytes) => finding.with("unwritten_bytes", bytes),
        None => finding,
    })
}

/// Judges files that have no extent list. The list is not needed if Plimsoll's engine wrote all of
/// the data.
fn judge_unlisted_files(bundle: &Bundle) -> Option<Finding> {
    let written = match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(m) => m.streams.iter().all(|stream| stream.layout == Layout::Written),
    };
    if bundle.run.driver == Driver::Real && written {
        let says = "this run wrote all data that it read";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    }
    let says = "it is unknown whether the run read blocks that were never written";
    Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(evidence::how_to_observe(bundle)))
}

/// If the backing file of a loop device has holes, compares the bytes read from the loop device
/// with the bytes read from the underlying disks.
fn judge_backing_files(bundle: &Bundle) -> Option<Finding> {
    let extents = bundle.observed.backing.as_ref()?;
    let empty = evidence::empty_share(extents).filter(|share| *share > EMPTY_SHARE_MAX)?;
    let top: u64 = evidence::top_devices(bundle)?.iter().map(|device| device.read_bytes).sum();
    let bottom =
        evidence::bottom_devices(bundle)?.iter().map(|device| device.read_bytes).sum::<u64>();
    if top == 0 || bottom as f64 >= top as f64 * BELOW_RATIO_MIN {
        return None;
    }
    let says = format!(
        "{} of the loop device's backing file is holes: the run read {} from the loop device, but \
         the underlying disk read only {}",
        evidence::percent(empty),
        evidence::size(top),
        evidence::size(bottom)
    );
    Some(
        Finding::new(RULE.id, Outcome::Fail, says)
            .with("empty_share", empty)
            .with("loop_read_bytes", top)
            .with("disk_read_bytes", bottom)
            .advise("write the whole loop device once before reading it"),
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Device;
    use plimsoll_evidence::observed::{DeviceTotals, Extents};

    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_sparse_or_unwritten_file_fails_and_one_percent_does_not() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let extents = bundle.observed.extents.as_mut().unwrap();
        extents.unwritten_bytes = Some(extents.size_bytes);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("100 %"), "{}", finding.says);
        let extents = bundle.observed.extents.as_mut().unwrap();
        (extents.unwritten_bytes, extents.hole_bytes) = (Some(0), extents.size_bytes / 50);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        let extents = bundle.observed.extents.as_mut().unwrap();
        extents.hole_bytes = extents.size_bytes / 101;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn what_is_not_listed_passes_only_where_the_run_wrote_it() {
        let mut bundle = fixtures::reads();
        bundle.observed.extents = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        // Files that are empty after the run do not show what the run read.
        bundle.observed.extents = Some(Extents::default());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        let mut sparse =
            fixtures::reads_with("queue_depth = 8", "queue_depth = 8\nlayout = \"sparse\"");
        sparse.observed.extents = None;
        assert_eq!(fixtures::outcome(&RULE, &sparse), Some(Outcome::Unknown));
    }

    #[test]
    fn holes_that_cannot_be_told_from_unwritten_space_are_unknown() {
        let mut bundle = fixtures::reads();
        bundle.observed.extents.as_mut().unwrap().unwritten_bytes = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_loop_device_is_followed_into_its_holes() {
        let mut bundle = fixtures::reads();
        let read = bundle.observed.devices[0].read_bytes;
        bundle.environment.devices[0].kind = "loop".into();
        let disk = Device { name: "sdb".into(), kind: "disk".into(), ..Device::default() };
        bundle.environment.devices.push(disk);
        let below =
            DeviceTotals { name: "sdb".into(), read_bytes: read, ..DeviceTotals::default() };
        bundle.observed.devices.push(below);
        let holes = Extents { size_bytes: 1 << 30, hole_bytes: 1 << 29, ..Extents::default() };
        bundle.observed.backing = Some(holes);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[1].read_bytes = read / 3;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_model_knows_what_was_never_written() {
        let mut bundle = fixtures::reads();
        bundle.run.driver = Driver::Model;
        bundle.observed.sources.reads_from =
            [("zero".to_owned(), 1.0), ("ssd".to_owned(), 99.0)].into();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.sources.reads_from.insert("ssd".into(), 98.0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn writes_alone_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None);
    }
}
