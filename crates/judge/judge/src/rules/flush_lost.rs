//! Checks that requested flushes reached the devices.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::DeviceTotals;
use plimsoll_plan::Workload;

use super::volatile_cache_unflushed::{
    flushes_expected, flushes_writes, has_own_flushes, may_bypass_cache,
};
use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location;

/// Mount options that make ext4, XFS, Btrfs and overlay mounts drop flushes.
const KEPT_BY: [&str; 4] = ["nobarrier", "barrier=0", "volatile", "fsync=volatile"];

pub const RULE: Rule = Rule {
    id: "flush-lost",
    asks: "did the requested flushes reach the devices?",
    explains: "The rate of durable writes depends mainly on their flushes. If a layer drops flushes \
               (an overlay mounted `volatile`, ext4 with `nobarrier`, a library that makes fsync do \
               nothing), the figure describes a different load. The kernel (5.5 and later) counts \
               flushes at devices with a volatile cache; the rule compares this count with the \
               number of durable writes. The rule accepts one flush for up to a hundred writes, or \
               for up to twice the number of operations in flight if that is more. If the devices \
               received fewer flushes, the rule fails. It also fails if a mount option drops \
               flushes. Flushes that the disk counted do not change this, because other processes \
               may have requested them. Disable that option.",
    bears_on: &[
        (Claim::Requirement, Weight::Refuting),
        (Claim::BurstWrite, Weight::Refuting),
        (Claim::SustainedWrite, Weight::Refuting),
        (Claim::TailLatency, Weight::Refuting),
        (Claim::Comparative, Weight::Refuting),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let requested = match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(m) => m.streams.iter().any(flushes_writes),
    };
    let writes = evidence::operations(bundle, false);
    // Other rules judge memory and remote storage.
    if !requested || writes == 0 || !evidence::is_real(bundle) || location::memory(bundle).is_some()
    {
        return None;
    }
    if let Some((mount_point, option)) = kept_by_option(bundle) {
        let says = format!(
            "the load requires durable writes, but {mount_point} is mounted with `{option}`, which drops flushes"
        );
        return Some(
            Finding::new(RULE.id, Outcome::Fail, says).advise("mount it without that option"),
        );
    }
    let flushes = flushes(bundle)?;
    let expected = flushes_expected(bundle);
    let finding = if expected == 0 && flushes == 0 {
        let says = "no flush reached the devices, but too few durable writes completed to require a \
                    flush";
        Finding::new(RULE.id, Outcome::Unknown, says).advise("measure longer")
    } else if flushes >= expected && has_own_flushes(bundle, flushes) {
        Finding::new(RULE.id, Outcome::Pass, "the flushes reached the devices")
    } else if flushes >= expected {
        let says = "flushes reached the devices, but other processes may have requested them";
        Finding::new(RULE.id, Outcome::Unknown, says)
    } else if may_bypass_cache(bundle) {
        let says = "the kernel does not count writes with forced unit access, so it is unknown \
                    whether writes bypassed the device caches";
        Finding::new(RULE.id, Outcome::Unknown, says)
    } else {
        let says = format!(
            "the load requires durable writes, but only {flushes} flushes reached the devices: \
             {writes} writes need at least {expected} flushes"
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find the option, setting or library that disables flushes")
    };
    Some(finding.with("flushes", flushes).with("flushes_expected", expected))
}

/// Returns a mount point that drops flushes because of a mount option, and this option.
fn kept_by_option(bundle: &Bundle) -> Option<(&str, &str)> {
    let environment = &bundle.environment;
    let mounts = environment.mounts.iter().chain(&environment.below);
    mounts.into_iter().find_map(|mount| {
        let mut options = mount.options.as_deref()?.split(',');
        let found = options.find(|option| KEPT_BY.contains(option))?;
        Some((mount.mount_point.as_deref().unwrap_or(&mount.path), found))
    })
}

/// Returns the number of flushes that reached devices with a volatile cache. Partitions and
/// mappings do not count flushes.
fn flushes(bundle: &Bundle) -> Option<u64> {
    let cached = |totals: &&DeviceTotals, kind: &str| {
        let mut devices = bundle.environment.devices.iter();
        devices.any(|device| {
            device.name == totals.name
                && device.write_cache.as_deref() == Some("write back")
                && (kind.is_empty() || device.kind == kind)
        })
    };
    let most = |devices: &mut dyn Iterator<Item = &DeviceTotals>| {
        devices.filter_map(|device| device.flushes).max()
    };
    let all = &bundle.observed.devices;
    let is_loop = |device: &&DeviceTotals| device.top && cached(device, "loop");
    if all.iter().filter(|device| device.top).all(|device| is_loop(&device)) {
        // Only the users of a loop device flush it. Other processes may flush the disk under it.
        return most(&mut all.iter().filter(is_loop));
    }
    most(&mut all.iter().filter(|device| cached(device, "")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixtures;
    use plimsoll_plan::SyncKind;

    use super::*;

    #[test]
    fn a_layer_that_keeps_flushes_to_itself_meets_no_requirement() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None, "none were asked for");
        let to = "queue_depth = 8\nsync = \"fdatasync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        bundle.plan.claims = vec![Claim::Requirement];
        bundle.observed.devices[0].flushes = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), None, "they were not counted");
        bundle.observed.devices[0].flushes = Some(5_999);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        assert_eq!(crate::judge(&bundle).verdict, crate::VerdictKind::Invalid);
        bundle.observed.devices[0].flushes = Some(6_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "whose they are");
        bundle.observed.neighbours.storage_read_bytes = Some(0);
        bundle.observed.neighbours.storage_written_bytes = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.neighbours.storage_written_bytes = Some(4096);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "one was another's");
        bundle.observed.devices[0].flushes = Some(600_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass), "most were not");
        bundle.environment.devices[0].write_cache = Some("write through".into());
        bundle.observed.devices[0].flushes = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), None, "there is nothing to flush");
        // The disk's counter includes flushes by other processes.
        bundle.observed.devices[0].flushes = Some(600_000);
        bundle.environment.mounts[0].options = Some("rw,fsync=volatile".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    /// Found by the adversary test: a flush takes seconds, and one flush follows every four writes.
    #[test]
    fn writes_whose_flush_has_not_completed_need_none() {
        let to = "queue_depth = 1\nsync = \"fsync\"\nsync_every = 4";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        let measured_ns = bundle.run.measure().unwrap().duration_ns;
        bundle.run.classes.retain(|class| !class.is_read);
        bundle.run.classes.truncate(1);
        bundle.run.classes[0].count = 7;
        let mut sync = bundle.run.classes[0].clone();
        (sync.group, sync.size_bytes) = ("sync".into(), 0);
        bundle.run.classes.push(sync);
        let mut outcome = |calls: u64, drained: u64, latency_ns: u64, flushes: u64| {
            bundle.observed.devices[0].flushes = Some(flushes);
            let sync = &mut bundle.run.classes[1];
            (sync.count, sync.drained, sync.latency_ns_sum) = (calls, drained, calls * latency_ns);
            fixtures::outcome(&RULE, &bundle)
        };
        let long = measured_ns / 2;
        assert_eq!(outcome(1, 1, long, 0), Some(Outcome::Unknown), "it ended after the stop");
        assert_eq!(outcome(2, 1, long, 0), Some(Outcome::Unknown), "one began before the start");
        assert_eq!(outcome(2, 0, long, 0), Some(Outcome::Fail), "one began and ended inside");
        assert_eq!(outcome(2, 0, 1_000, 0), Some(Outcome::Fail), "both were short");
        assert_eq!(outcome(1, 0, 1_000, 0), Some(Outcome::Unknown), "one may have straddled");
    }

    #[test]
    fn flushes_before_the_counters_were_read_are_not_missing() {
        let to = "queue_depth = 1\nsync = \"fsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        fixtures::rates(&mut bundle, |tenth| (if tenth < 5 { 1_000 } else { 0 }, 1_000_000));
        bundle.run.classes[0].count = 5_000;
        bundle.run.classes[0].latency_ns_sum = 5_000_000_000;
        bundle.run.classes[0].size_bytes = 5_000 * 4096;
        bundle.observed.devices[0].flushes = Some(0);
        let start_ns = bundle.run.measure().unwrap().start_ns;
        let mut from = |after_ns: u64| {
            bundle.observed.counted_from_ns = Some(start_ns + after_ns);
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(from(0), Some(Outcome::Fail), "all were after it");
        assert_eq!(from(300_000_000), Some(Outcome::Fail), "two fifths were after it");
        assert_eq!(from(500_000_000), Some(Outcome::Unknown), "all were before it");
    }

    /// Found twice by random tests with valid runs: one stream has `sync` but only reads, and
    /// another stream writes without `sync`.
    #[test]
    fn writes_of_a_stream_without_sync_need_no_flush() {
        let mut bundle = fixtures::writes();
        let Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!("a matrix") };
        matrix.streams[0].sync.kind = SyncKind::Fsync;
        let mut other = matrix.streams[0].clone();
        other.sync.kind = SyncKind::None;
        matrix.streams[0].read_percent = 100.0;
        matrix.streams.push(other);
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        let Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!("a matrix") };
        matrix.streams[0].read_percent = 50.0;
        bundle.run.classes.iter_mut().for_each(|class| class.instance = 1);
        assert_eq!(flushes_expected(&bundle), 0, "the stream with sync wrote nothing");
        bundle.run.classes.iter_mut().for_each(|class| class.instance = 0);
        assert!(flushes_expected(&bundle) > 1, "all writes are of that stream");
    }
}
