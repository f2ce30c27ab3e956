//! Compares the counters of the host, the store and the model with other records of the same I/Os.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{DeviceTotals, GeneratorThread};
use plimsoll_evidence::run::{ClassTotals, EndKind, Phase};
use plimsoll_evidence::series::Data;
use plimsoll_plan::{ResolvedPlan, Workload};

use super::CrossChecks;
use crate::figures::measured;

/// Sector size of device counters (Documentation/block/stat.rst of Linux).
const SECTOR_BYTES: u64 = 512;
/// Allowed relative difference between two readings of one counter at slightly different moments.
const SHARE: f64 = 0.02;
/// Allowed delay of the counters of devices and CPUs. These counters advance in ticks, and are read
/// slightly later than the other counters.
const LATE_NS: u64 = 2_000_000_000;
/// Allowed delay between the CPU times of the threads and of their process.
const CPU_LATE_NS: u64 = 500_000_000;
/// Largest request of a Linux block device (`BLK_DEF_MAX_SECTORS_CAP` in include/linux/blkdev.h).
/// The kernel updates the byte counter of a request before the I/O counter, and both may be read in
/// between.
const REQUEST_BYTES_MAX: u64 = 4 << 20;

pub(super) fn check(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let Some(measure) = measured(bundle) else { return };
    let gauges = gauges(bundle, measure);
    devices(bundle, measure, &gauges, cross_checks);
    links(bundle, &gauges, cross_checks);
    shares(bundle, measure, cross_checks);
    access_profile(bundle, cross_checks);
    working_sets(bundle, cross_checks);
    transfer_sizes(bundle, cross_checks);
    store(bundle, cross_checks);
    check_model(bundle, cross_checks);
    sizes(bundle, cross_checks);
}

/// Returns the sum and the maximum of each gauge over its rows in the measured phase.
fn gauges<'a>(bundle: &'a Bundle, measure: &Phase) -> BTreeMap<&'a str, (f64, f64)> {
    let index = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    let mut gauges: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for row in bundle.series.iter().filter(|row| Some(row.phase as usize) == index) {
        let Data::Gauge(value) = row.data else { continue };
        let (sum, largest) = gauges.entry(row.name.as_str()).or_default();
        (*sum, *largest) = (*sum + value, largest.max(value));
    }
    gauges
}

/// Compares a network interface's totals with the series of the same counters. The series ends a
/// moment before the totals are read.
fn links(bundle: &Bundle, gauges: &BTreeMap<&str, (f64, f64)>, cross_checks: &mut CrossChecks) {
    let Some(links) = &bundle.observed.links else { return };
    for one in &links.interfaces {
        let (name, Some(counters)) = (&one.name, one.counters) else { continue };
        let each =
            [("received_bytes", counters.received_bytes), ("sent_bytes", counters.sent_bytes)];
        for (counter, total) in each {
            let Some((sum, _)) = gauges.get(format!("link.{name}.{counter}").as_str()) else {
                continue;
            };
            cross_checks.require(*sum <= total as f64 * (1.0 + SHARE), || {
                format!("{counter} of {name}: {total} in the totals, but {sum} in the series")
            });
        }
    }
}

/// Compares a device's totals with the series of the same counter, and with the limits of a device.
fn devices(
    bundle: &Bundle,
    measure: &Phase,
    gauges: &BTreeMap<&str, (f64, f64)>,
    cross_checks: &mut CrossChecks,
) {
    // If a thread hung, or if operations were drained after the end, the totals were read later
    // than the last row.
    let whole = bundle.run.end.kind == EndKind::Completed;
    let drained = bundle.run.classes.iter().any(|class| class.drained > 0);
    let longest_ns = match whole && !drained {
        true => measure.duration_ns,
        false => bundle.run.duration_ns.saturating_sub(measure.start_ns).max(measure.duration_ns),
    };
    for device in &bundle.observed.devices {
        let name = &device.name;
        let counters = [
            ("reads", device.reads),
            ("read_bytes", device.read_bytes),
            ("writes", device.writes),
            ("written_bytes", device.written_bytes),
        ];
        for (counter, total) in counters {
            let Some((sum, largest)) = gauges.get(format!("device.{name}.{counter}").as_str())
            else {
                continue;
            };
            // The totals are read after the last row. They may include bytes that were transferred
            // after this row, which no row includes.
            let total = total as f64;
            cross_checks.require(
                *sum <= total * (1.0 + SHARE)
                    && (!whole || total <= sum + largest + sum * SHARE + 64.0 * 4096.0),
                || format!("{counter} of {name}: {total} in the totals, but {sum} in the series"),
            );
        }
        check_device_limits(device, longest_ns, cross_checks);
    }
}

fn check_device_limits(device: &DeviceTotals, longest_ns: u64, cross_checks: &mut CrossChecks) {
    let DeviceTotals { name, reads, read_bytes, writes, written_bytes, .. } = device;
    for (what, ios, bytes) in [("reads", reads, read_bytes), ("writes", writes, written_bytes)] {
        let is_possible = *bytes <= REQUEST_BYTES_MAX || *ios > 0;
        cross_checks.require(bytes % SECTOR_BYTES == 0 && is_possible, || {
            format!("{name}: {ios} {what} cannot have moved {bytes} bytes in total")
        });
    }
    let longest_ns = longest_ns.saturating_add(LATE_NS);
    cross_checks.require(device.busy_ns <= longest_ns + longest_ns / 10, || {
        format!("{name} was busy for longer than the length of the measurement")
    });
}

/// Checks that shares are between 0 and 1. The generator cannot use more CPU time than the host
/// has.
fn shares(bundle: &Bundle, measure: &Phase, cross_checks: &mut CrossChecks) {
    let cpu = &bundle.observed.cpu;
    let of = [cpu.busy_min, cpu.busy_avg, cpu.busy_max];
    let mut least = 0.0;
    for share in of.into_iter().flatten() {
        cross_checks.require((least - 1e-9..=1.0 + 1e-9).contains(&share), || {
            format!("these busy shares of the CPUs (minimum, mean, maximum) are impossible: {of:?}")
        });
        least = share;
    }
    let generator = &bundle.observed.generator;
    if let (Some(user), Some(system), Some(cpus)) =
        (generator.user_ns, generator.system_ns, bundle.environment.cpus)
    {
        let had = u128::from(bundle.run.duration_ns.max(measure.duration_ns) + LATE_NS)
            * u128::from(cpus);
        cross_checks.require(u128::from(user) + u128::from(system) <= had + had / 10, || {
            "the load generator used more CPU time than the host's CPUs had".to_owned()
        });
    }
    // The kernel divides CPU time into user and system time by samples, so only the sums agree.
    if let (Some(user), Some(system)) = (generator.user_ns, generator.system_ns) {
        let of_thread = |thread: &GeneratorThread| thread.user_ns.saturating_add(thread.system_ns);
        let threads = generator.threads.iter().map(of_thread).fold(0, u64::saturating_add);
        let process = user.saturating_add(system);
        let most = process.saturating_add(process / 10).saturating_add(CPU_LATE_NS);
        cross_checks.require(threads <= most, || {
            format!(
                "the generator's threads used {threads} ns of CPU time, but its process only \
                 {process} ns"
            )
        });
    }
}

/// Returns true if two counters differ by at most the number of operations in flight. The counters
/// start and stop at slightly different times.
fn near(bundle: &Bundle, a: u64, b: u64) -> bool {
    let drained: u64 = bundle.run.classes.iter().map(|class| class.drained).sum();
    let in_flight =
        2 * u64::from(bundle.run.engine.sessions.max(bundle.run.engine.threads)) + drained;
    a.abs_diff(b) <= in_flight + (a.max(b) as f64 * SHARE) as u64 + 2
}

/// Compares the number of requested operations with that of completed operations, as [`near`] does.
/// In an open loop above the capacity, any number of operations may still wait at the end.
fn near_requested(bundle: &Bundle, requested: u64, done: u64) -> bool {
    near(bundle, requested, done) || !bundle.run.engine.closed_loop && requested > done
}

fn count(bundle: &Bundle, takes: impl Fn(&ClassTotals) -> bool) -> u64 {
    bundle.run.sum(takes, |class| class.count)
}

/// Compares the number of operations in the totals and in the access profile.
fn access_profile(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let profile = &bundle.observed.workload;
    for (what, counted, is_read) in
        [("reads", profile.reads, true), ("writes", profile.writes, false)]
    {
        let Some(counted) = counted else { continue };
        let total = count(bundle, |c| c.group == "transactional" && c.is_read == is_read);
        cross_checks.require(near_requested(bundle, counted, total), || {
            format!("{what}: {counted} in the access profile, but {total} in the totals")
        });
    }
}

/// Compares the working sets with each other and with the size of the data. A mail store's data
/// grows while it runs.
fn working_sets(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let profile = &bundle.observed.workload;
    let (read, written) = (profile.working_set_read_bytes, profile.working_set_written_bytes);
    let data_bytes = bundle
        .run
        .instances
        .iter()
        .map(|i| i.size_bytes_initial.max(i.size_bytes_final))
        .fold(0, u64::saturating_add);
    let all = [read, written, profile.working_set_bytes, profile.reach_bytes];
    for bytes in all.into_iter().flatten().filter(|_| bundle.plan.workload.matrix().is_some()) {
        let is_possible = data_bytes == 0 || bytes <= data_bytes.saturating_add(REQUEST_BYTES_MAX);
        cross_checks.require(is_possible, || {
            format!("the working set of {bytes} bytes is larger than the data, {data_bytes} bytes")
        });
    }
    if let (Some(read), Some(written), Some(both)) = (read, written, profile.working_set_bytes) {
        let possible = read.max(written)..=read.saturating_add(written);
        cross_checks.require(possible.contains(&both), || {
            format!(
                "the working set of {both} bytes cannot consist of {read} bytes read and {written} \
                 bytes written"
            )
        });
    }
}

/// Compares the mean sizes of transfers with the smallest and the largest transfer.
fn transfer_sizes(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let profile = &bundle.observed.workload;
    let (Some(least), Some(most)) = (profile.size_bytes_min, profile.size_bytes_max) else {
        return;
    };
    let means = [("read", profile.read_size_bytes_avg), ("write", profile.write_size_bytes_avg)];
    for (what, mean) in means {
        let Some(mean) = mean else { continue };
        let possible = least as f64 * 0.999..=most as f64 * 1.001;
        cross_checks.require(possible.contains(&mean), || {
            format!("the mean {what} of {mean:.0} bytes is not between {least} and {most} bytes")
        });
    }
}

/// Returns the largest transfer that a plan requests. The access profile may lack larger transfers,
/// because a mail store joins neighbouring pages in one write.
fn planned_bytes_max(plan: &ResolvedPlan) -> u64 {
    match &plan.workload {
        Workload::Mailbox(store) => store.coalesce_max_bytes,
        Workload::Matrix(matrix) => {
            let sizes = matrix.streams.iter().flat_map(|s| s.sizes.iter().chain(&s.write_sizes));
            sizes.map(|share| share.size_bytes).max().unwrap_or(0)
        }
    }
}

/// Compares the bytes of a class with the sizes of its transfers. If a thread hung, its intervals
/// were recorded, but its part of the profile is missing.
fn sizes(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let profile = &bundle.observed.workload;
    let (Some(least), Some(most)) = (profile.size_bytes_min, profile.size_bytes_max) else {
        return;
    };
    let largest = planned_bytes_max(&bundle.plan);
    for class in bundle.run.classes.iter().filter(|c| c.group == "transactional" && c.errors == 0) {
        let ClassTotals { name, size_bytes, .. } = class;
        // Unfinished operations are included in the count, but transferred no bytes.
        let count = class.count.saturating_sub(class.unfinished().unwrap_or(0));
        let profiled = if class.is_read { profile.reads } else { profile.writes };
        let total =
            self::count(bundle, |c| c.group == "transactional" && c.is_read == class.is_read);
        let unseen = profiled.map_or(0, |seen| total.saturating_sub(seen)).min(count);
        let times = |count: u64, bytes: u64| u128::from(count) * u128::from(bytes);
        let low = times(count - unseen, least);
        let high = times(count - unseen, most) + times(unseen, most.max(largest));
        cross_checks.require((low..=high).contains(&u128::from(*size_bytes)), || {
            format!(
                "{name}: {count} transfers of {least} to {most} bytes each cannot have the recorded \
                 total of {size_bytes} bytes"
            )
        });
    }
}

/// Compares the totals with the mail store's own counters.
fn store(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let counters = &bundle.run.counters;
    let of = |name: &str, takes: &dyn Fn(&ClassTotals) -> bool, cross_checks: &mut CrossChecks| {
        let Some(counted) = counters.get(name).copied() else { return };
        let total = count(bundle, takes);
        cross_checks.require(near(bundle, counted, total), || {
            format!("{name}: {counted} in the store's counters, but {total} in the totals")
        });
    };
    let transactional = |is_read: bool| {
        move |class: &ClassTotals| class.group == "transactional" && class.is_read == is_read
    };
    of("database_reads", &transactional(true), cross_checks);
    of("database_writes", &transactional(false), cross_checks);
    of("log_writes", &|class| class.group == "log" && !class.is_read, cross_checks);
}

/// Compares the totals with the number of operations that the model received.
fn check_model(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let Some(inside) = &bundle.observed.inside else { return };
    for (what, is_read) in [("reads", true), ("writes", false)] {
        let entered: u64 = inside
            .nodes
            .iter()
            .flat_map(|node| if is_read { node.reads.values() } else { node.writes.values() })
            .map(|tally| tally.ios)
            .sum();
        let total = count(bundle, |class| {
            class.is_read == is_read
                && !["sync", "metadata", "durable", "first_byte"].contains(&class.group.as_str())
        });
        cross_checks.require(near_requested(bundle, entered, total), || {
            format!("{what}: the model received {entered}, but the totals contain {total}")
        });
    }
}
