//! Checks that acknowledged writes would survive a power failure.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_plan::{Stream, SyncKind, Workload};

use super::{Rule, Weight, balance, evidence};
use crate::claim::Claim;
use crate::figures;
use crate::finding::{Finding, Outcome};
use crate::location::{self, Location};

/// Maximum number of durable writes that may share a flush of the device, as in a group commit. In
/// a measurement, 800 writes that each requested a flush caused 800 flushes; without durable
/// writes, there were none.
const WRITES_PER_FLUSH_MAX: u64 = 100;
/// Maximum number of durable writes per flush, as a multiple of the operations in flight. The
/// kernel merges flushes that wait at the same time.
const SHARED_TIMES: u64 = 2;

/// Minimum number of bytes that another process is assumed to write per flush.
const BLOCK_BYTES: u64 = 4096;

pub const RULE: Rule = Rule {
    id: "volatile-cache-unflushed",
    asks: "were writes flushed from volatile caches before they were acknowledged?",
    explains: "A device with a write-back cache loses unflushed data in a power failure. Plimsoll \
               checks whether the workload requests durability (`sync`, a mail store's log), \
               whether the devices have such a cache (queue/write_cache), and whether flushes \
               reached them (the kernel's flush counter, since 5.5). Single writes with `dsync` may \
               bypass the cache (queue/fua); the kernel does not count these. The flush counter \
               includes all flushes of the disk. The rule therefore subtracts the flushes that \
               other processes may have requested, at most one per block that they wrote. If some \
               processes are not visible, the outcome is unknown. Virtual disks, LUNs and network \
               block devices forward a flush, but it is unknown whether the storage behind them \
               honours it. A target in memory loses all its data. A run cannot prove that data \
               survives: only a power-cut test shows this.",
    bears_on: &[(Claim::DurableWrite, Weight::Mandatory), (Claim::BurstWrite, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let writes = evidence::operations(bundle, false);
    if writes == 0 || !evidence::is_real(bundle) {
        return None;
    }
    // If a single stream does not request durability, some of the writes are not durable.
    let unflushed: Vec<&Stream> = evidence::streams(bundle)
        .iter()
        .filter(|stream| stream.read_percent < 100.0 && stream.sync.kind == SyncKind::None)
        .collect();
    let requested = unflushed.is_empty();
    let is_buffered =
        |what| unflushed.iter().any(|stream| evidence::is_buffered(bundle, stream) == what);
    let devices = &bundle.environment.devices;
    let volatile: Vec<&str> = devices
        .iter()
        .filter(|device| device.write_cache.as_deref() == Some("write back"))
        .map(|device| device.name.as_str())
        .collect();
    let known = devices.iter().any(|device| device.write_cache.is_some());
    let disks = location::disks(bundle);
    let unseen = disks.iter().find(|(disk, _)| disk.write_cache.is_none());
    let buffered = evidence::buffered_paths(bundle);
    let flushes = bundle.observed.devices.iter().filter_map(|device| device.flushes).max();
    let hidden = location::farthest(bundle)
        .filter(|(_, place)| !matches!(place, Location::Own | Location::Controller));
    let finding = if let Some(what) = location::memory(bundle) {
        let says =
            format!("the target is in memory ({what}), which loses all data in a power failure");
        Finding::new(RULE.id, Outcome::Fail, says).advise("write to storage")
    } else if !known {
        Finding::new(RULE.id, Outcome::Unknown, "it is unknown whether the devices cache writes")
            .advise(
                "check the write cache on the storage system itself: a result file or a network \
                 mount does not show its state",
            )
    } else if let Some((disk, _)) = unseen.filter(|_| volatile.is_empty()) {
        let says = format!("it is unknown whether {} caches writes", disk.name);
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("check the write cache on the storage system itself")
    } else if is_buffered(Some(true)) {
        let says = format!(
            "writes to {} went into this host's page cache, and some of them were never flushed",
            buffered.join(", ")
        );
        Finding::new(RULE.id, unflushed_outcome(bundle), says).advise(DURABLE)
    } else if is_buffered(None) && volatile.is_empty() {
        let says = "it is unknown whether unflushed writes used direct I/O, because another stream \
                    uses the page cache";
        Finding::new(RULE.id, Outcome::Unknown, says).advise(DURABLE)
    } else if volatile.is_empty() && hidden.is_none() {
        Finding::new(RULE.id, Outcome::Pass, "no underlying device has a volatile write cache")
    } else if !requested && !volatile.is_empty() {
        let have = if volatile.len() == 1 { "has" } else { "have" };
        let says = format!(
            "some of the {writes} writes were never flushed, and {} {have} a write cache that may \
             be volatile",
            volatile.join(", ")
        );
        Finding::new(RULE.id, unflushed_outcome(bundle), says).advise(DURABLE)
    } else {
        let flushed = flushed(bundle, flushes, &volatile);
        match hidden {
            Some((device, place)) if flushed.outcome != Outcome::Fail => {
                let says = format!(
                    "this host cannot determine whether acknowledged writes survive a power \
                     failure: {} {}",
                    device.name,
                    place.says()
                );
                Finding::new(RULE.id, Outcome::Unknown, says)
                    .advise("run a power-cut test of the storage: `plimsoll durability`")
            }
            _ => flushed,
        }
    };
    Some(match flushes {
        Some(flushes) => finding.with("writes", writes).with("flushes", flushes),
        None => finding.with("writes", writes),
    })
}

const DURABLE: &str = "request durable writes: `sync = \"dsync\"` or `\"fsync\"`";

/// Returns the outcome for a run in which some writes were never flushed: a failure if the plan
/// claims durability, otherwise unknown.
fn unflushed_outcome(bundle: &Bundle) -> Outcome {
    if bundle.plan.claims.contains(&Claim::DurableWrite) { Outcome::Fail } else { Outcome::Unknown }
}

fn flushed(bundle: &Bundle, flushes: Option<u64>, volatile: &[&str]) -> Finding {
    if volatile.is_empty() {
        return Finding::new(
            RULE.id,
            Outcome::Pass,
            "no underlying device has a volatile write cache",
        );
    }
    let names = volatile.join(", ");
    let Some(flushes) = flushes else {
        let says = format!("{names} caches writes, but the kernel does not count its flushes");
        return Finding::new(RULE.id, Outcome::Unknown, says).advise("use kernel 5.5 or later");
    };
    if flushes < flushes_expected(bundle) {
        if may_bypass_cache(bundle) {
            let says = format!(
                "only {flushes} flushes reached {names}, which caches writes; the kernel does not \
                 count writes that bypass the cache"
            );
            return Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("set `sync = \"fdatasync\"`, whose flushes are counted");
        }
        let says = format!("only {flushes} flushes reached {names}, which caches writes");
        return Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find the setting that disables flushes (such as the mount option nobarrier)");
    }
    if flushes == 0 {
        let says = format!(
            "no flush reached {names}, but too few durable writes completed to require a flush"
        );
        return Finding::new(RULE.id, Outcome::Unknown, says).advise("measure longer");
    }
    if !has_own_flushes(bundle, flushes) {
        let says = format!(
            "{flushes} flushes reached {names}, but other processes may have requested them: the \
             kernel does not count flushes by process"
        );
        return Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("measure as root while no other process writes on this host");
    }
    Finding::new(RULE.id, Outcome::Pass, format!("{flushes} flushes reached {names}"))
}

/// Returns true if enough flushes remain after subtracting those of other processes (at most one
/// per block that they wrote). Nothing is subtracted for a loop device under the target, because
/// only the target's file system uses it.
pub(super) fn has_own_flushes(bundle: &Bundle, flushes: u64) -> bool {
    let mut top = bundle.observed.devices.iter().filter(|device| device.top).peekable();
    let is_loop = |name: &str| {
        bundle.environment.devices.iter().any(|device| device.name == name && device.kind == "loop")
    };
    if top.peek().is_some() && top.all(|device| is_loop(&device.name)) {
        return true;
    }
    let others = &bundle.observed.neighbours;
    let written = others.storage_written_bytes.filter(|_| others.is_whole());
    // Bytes that were written to other disks caused no flushes of this disk.
    let elsewhere = bundle.observed.other_disks.map_or(0, |moved| moved.disks.written_bytes);
    let of_others = written.map(|bytes| bytes.saturating_sub(elsewhere).div_ceil(BLOCK_BYTES));
    of_others.is_some_and(|others| flushes.saturating_sub(others) >= flushes_expected(bundle))
}

/// Returns the minimum number of flushes that the requested durable writes require. The result is 0
/// if the number of completed flushes does not exceed the average number in flight (Little's law):
/// the device may have counted all of them before the measurement.
pub(super) fn flushes_expected(bundle: &Bundle) -> u64 {
    let outstanding = match &bundle.plan.workload {
        Workload::Mailbox(store) => u64::from(store.databases),
        Workload::Matrix(matrix) => matrix.outstanding(),
    };
    let shared = WRITES_PER_FLUSH_MAX.max(outstanding.saturating_mul(SHARED_TIMES));
    let requests = flush_requests(bundle);
    let measured_ns = bundle.run.measure().map_or(0, |phase| phase.duration_ns).max(1);
    let in_flight = requests.latency_ns_sum.div_ceil(measured_ns).min(outstanding);
    if requests.count <= in_flight { 0 } else { (requests.count / shared).max(1) }
}

/// Returns true if each durable write may bypass the device's cache, so that no flush is required.
pub(super) fn may_bypass_cache(bundle: &Bundle) -> bool {
    let by_dsync = match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(m) => m.streams.iter().any(|stream| stream.sync.kind == SyncKind::Dsync),
    };
    // Old bundles do not record which devices support writes that bypass the cache.
    let mut devices = bundle.environment.devices.iter();
    by_dsync
        && devices.any(|device| {
            device.write_cache.as_deref() == Some("write back")
                && device.forced_writes != Some(false)
        })
}

/// Returns true if a stream writes, and makes its writes durable.
pub(super) fn flushes_writes(stream: &Stream) -> bool {
    stream.sync.kind != SyncKind::None && stream.read_percent < 100.0
}

/// Flush requests that completed during the measurement.
#[derive(Default)]
struct FlushRequests {
    count: u64,
    latency_ns_sum: u64,
}

/// Returns the flushes of streams with durable writes, or a mail store's durable log writes. A
/// write whose flush has not completed is not included. If the device counters were first read
/// after the start of the measurement, earlier flushes are left out.
fn flush_requests(bundle: &Bundle) -> FlushRequests {
    let late_from_ns = balance::counted_late_from_ns(bundle, false);
    let counted = |class: &ClassTotals| match late_from_ns {
        Some(from_ns) => figures::count_since(bundle, &class.name, from_ns),
        None => class.count.saturating_sub(class.drained),
    };
    let of = |pick: &dyn Fn(&ClassTotals) -> bool, every: u64| FlushRequests {
        count: bundle.run.sum(pick, counted) / every,
        latency_ns_sum: bundle.run.sum(pick, |class| class.latency_ns_sum) / every,
    };
    let Workload::Matrix(matrix) = &bundle.plan.workload else {
        return of(&|class| class.group == "log" && !class.is_read, 1);
    };
    let is_alone = matrix.streams.len() == 1;
    let mut all = FlushRequests::default();
    for (number, stream) in (0..).zip(&matrix.streams).filter(|(_, s)| flushes_writes(s)) {
        let is_of = |class: &ClassTotals| !class.is_read && (is_alone || class.instance == number);
        let is_call = |class: &ClassTotals| class.group == "sync" && is_of(class);
        // Synchronous writes have no separate flush call.
        let requests = match bundle.run.classes.iter().any(is_call) {
            true => of(&is_call, 1),
            false => {
                let every = u64::from(stream.sync.every_writes.max(1));
                of(&|class| class.size_bytes > 0 && is_of(class), every)
            }
        };
        all.count += requests.count;
        all.latency_ns_sum = all.latency_ns_sum.saturating_add(requests.latency_ns_sum);
    }
    all
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Transport;

    use plimsoll_plan::DirectIo;

    use super::super::fixtures;
    use super::*;

    /// Sets the bytes that other processes read and wrote to zero.
    fn alone(bundle: &mut Bundle) {
        bundle.observed.neighbours.storage_read_bytes = Some(0);
        bundle.observed.neighbours.storage_written_bytes = Some(0);
    }

    #[test]
    fn flushes_of_others_do_not_stand_in_for_the_loads_own() {
        let to = "queue_depth = 8\nsync = \"fdatasync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        let outcome = |bundle: &Bundle| fixtures::outcome(&RULE, bundle);
        bundle.observed.devices[0].flushes = Some(10_000);
        alone(&mut bundle);
        assert_eq!(outcome(&bundle), Some(Outcome::Pass));
        // Each small write of another process may have requested a flush.
        bundle.observed.neighbours.storage_written_bytes = Some(10_000 * 4096);
        assert_eq!(outcome(&bundle), Some(Outcome::Unknown));
        bundle.observed.neighbours.storage_written_bytes = Some(1_000 * 4096);
        assert_eq!(outcome(&bundle), Some(Outcome::Pass), "enough are left");
        bundle.observed.neighbours.unreadable = 1;
        assert_eq!(outcome(&bundle), Some(Outcome::Unknown), "not all processes show");
        bundle.observed.neighbours.unreadable = 0;
        bundle.observed.neighbours.outside_unseen = true;
        assert_eq!(outcome(&bundle), Some(Outcome::Unknown), "a container does not show all");
        bundle.observed.neighbours.storage_written_bytes = None;
        assert_eq!(outcome(&bundle), Some(Outcome::Unknown));
        // Only the file system of the target uses a loop device, so all flushes of this device
        // belong to the load.
        bundle.environment.devices[0].kind = "loop".into();
        assert!(has_own_flushes(&bundle, 10_000));
    }

    #[test]
    fn writes_without_a_flush_into_a_write_back_cache_fail() {
        let mut bundle = fixtures::writes();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.claims = vec![Claim::DurableWrite];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices[0].write_cache = Some("write through".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.devices[0].write_cache = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn one_disk_that_does_not_tell_leaves_all_of_them_open() {
        let mut bundle = fixtures::writes();
        bundle.environment.devices[0].write_cache = Some("write through".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let mut other = bundle.environment.devices[0].clone();
        (other.name, other.write_cache) = ("sdb".into(), None);
        bundle.environment.devices.push(other);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn what_lies_in_the_page_cache_is_not_durable_whatever_the_disks_do() {
        let mut bundle = fixtures::writes();
        bundle.environment.devices[0].write_cache = Some("write through".into());
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.claims = vec![Claim::DurableWrite];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_buffered_stream_does_not_make_another_one_buffered() {
        let mut bundle = fixtures::writes();
        bundle.environment.devices[0].write_cache = Some("write through".into());
        bundle.run.engine.paths[0].direct = false;
        bundle.plan.claims = vec![Claim::DurableWrite];
        let mut with_another = |refused, direct, kind| {
            bundle.run.engine.paths[0].direct_refused = refused;
            let Workload::Matrix(matrix) = &mut bundle.plan.workload else { return None };
            let mut other = matrix.streams[0].clone();
            (other.direct, other.sync.kind) = (direct, kind);
            matrix.streams.truncate(1);
            matrix.streams.push(other);
            fixtures::outcome(&RULE, &bundle)
        };
        let (off, auto) = (DirectIo::Off, DirectIo::Auto);
        assert_eq!(with_another(None, off, SyncKind::Dsync), Some(Outcome::Unknown));
        assert_eq!(with_another(None, off, SyncKind::None), Some(Outcome::Fail));
        // If no stream requests buffered I/O, the file system must have refused direct I/O.
        assert_eq!(with_another(None, auto, SyncKind::Dsync), Some(Outcome::Fail));
        // Newer evidence records whether the file system refused direct I/O.
        let refused = [(false, Outcome::Pass), (true, Outcome::Fail)];
        for (refused, outcome) in refused {
            assert_eq!(with_another(Some(refused), off, SyncKind::Dsync), Some(outcome));
        }
    }

    #[test]
    fn one_stream_that_flushes_does_not_answer_for_another() {
        let to = "queue_depth = 8\nsync = \"dsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        alone(&mut bundle);
        bundle.observed.devices[0].flushes = Some(600_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        if let Workload::Matrix(matrix) = &mut bundle.plan.workload {
            let mut other = matrix.streams[0].clone();
            other.sync.kind = SyncKind::None;
            matrix.streams.push(other);
        }
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn in_a_guest_nothing_shows_what_survives() {
        let to = "queue_depth = 8\nsync = \"dsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        alone(&mut bundle);
        bundle.observed.devices[0].flushes = Some(600_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.virtualisation = Some("KVM".into());
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.contains("hypervisor"), "{}", finding.says);
        // In a guest, the outcome is unknown even if the disk reports a write-through cache.
        bundle.environment.devices[0].write_cache = Some("write through".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.virtualisation = None;
        bundle.environment.devices[0].transport = Some(Transport::Iscsi);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.devices[0].transport = Some(Transport::Zram);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn writes_that_go_past_the_cache_need_no_flush() {
        let to = "queue_depth = 8\nsync = \"dsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        alone(&mut bundle);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices[0].forced_writes = Some(true);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.devices[0].forced_writes = Some(false);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn flushes_that_wait_for_each_other_are_one() {
        let to = "queue_depth = 256\nsync = \"fdatasync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        alone(&mut bundle);
        bundle.observed.devices[0].flushes = Some(600_000 / 256);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].flushes = Some(600_000 / 600);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn flushes_must_reach_the_device() {
        let to = "queue_depth = 8\nsync = \"dsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        alone(&mut bundle);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.devices[0].flushes = Some(6_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].flushes = Some(5_999);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.devices[0].flushes = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
