//! Evidence that several rules read. `None` means unknown.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::ObservationGap;
use plimsoll_evidence::foreign::VERIFY_GROUP;
use plimsoll_evidence::observed::{DeviceTotals, Extents};
use plimsoll_evidence::run::{ClassTotals, Driver};
use plimsoll_plan::{Matrix, Stream, Target, TargetKind, Workload};

use crate::figures::measured;

/// Minimum bytes for a ratio of bytes: read-ahead and metadata have this size.
const RATIO_BYTES_MIN: u64 = 8 << 20;

/// Returns true if the load ran on real storage, by our engine or a foreign one.
pub(crate) fn is_real(bundle: &Bundle) -> bool {
    bundle.run.driver != Driver::Model
}

/// Returns true if the load ran on a null target (`null = true`).
pub(crate) fn is_null(bundle: &Bundle) -> bool {
    let targets = &bundle.plan.targets;
    !targets.is_empty() && targets.iter().all(|target| target.kind == TargetKind::Null)
}

/// File systems whose data is on another machine, or on a hypervisor's host.
const REMOTE_FILE_SYSTEMS: [&str; 14] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "9p",
    "virtiofs",
    "afs",
    "lustre",
    "gpfs",
    "beegfs",
    "pvfs2",
    "fuse.glusterfs",
    "fuse.sshfs",
];

/// Returns true if this process itself accesses the plan's target over a network.
pub(crate) fn is_remote_target(bundle: &Bundle) -> bool {
    let far =
        |target: &Target| matches!(target.kind, TargetKind::Nfs { .. } | TargetKind::S3 { .. });
    let targets = &bundle.plan.targets;
    !targets.is_empty() && targets.iter().all(far)
}

/// Returns true if all of the target's data is behind a network protocol, on another host as far as
/// visible.
pub(crate) fn is_remote(bundle: &Bundle) -> bool {
    let servers = &bundle.observed.servers;
    if !servers.is_empty() {
        return servers.iter().any(|server| server.local == Some(false) || server.relays);
    }
    if is_remote_target(bundle) {
        return true;
    }
    let mounts = &bundle.environment.mounts;
    let is_far = |kind: &Option<String>| {
        kind.as_deref().is_some_and(|kind| REMOTE_FILE_SYSTEMS.contains(&kind))
    };
    !mounts.is_empty() && mounts.iter().all(|mount| is_far(&mount.file_system))
}

/// Returns advice for unobserved facts: our own runs lack privileges, other tools an observer.
pub(crate) fn how_to_observe(bundle: &Bundle) -> &'static str {
    match bundle.run.driver {
        Driver::Real | Driver::Model => {
            "run Plimsoll as root on the host itself, outside containers, so that it can see this"
        }
        Driver::Foreign => "run it with plimsoll, or under `plimsoll observe`",
    }
}

/// Returns the matrix's streams; none for a mail store.
pub(crate) fn streams(bundle: &Bundle) -> &[Stream] {
    matrix(bundle).map_or(&[], |matrix| &matrix.streams)
}

/// Returns the matrix, if the plan has one.
pub(crate) fn matrix(bundle: &Bundle) -> Option<&Matrix> {
    match &bundle.plan.workload {
        Workload::Matrix(matrix) => Some(matrix),
        Workload::Mailbox(_) => None,
    }
}

/// Returns the classes that move data. Flushes and operations on names have no bytes.
fn data_classes(bundle: &Bundle) -> impl Iterator<Item = &ClassTotals> {
    bundle.run.classes.iter().filter(|class| class.size_bytes > 0)
}

/// Returns the bytes that the application read in the measured phase.
pub(crate) fn read_bytes(bundle: &Bundle) -> u64 {
    data_classes(bundle).filter(|c| c.is_read).map(|c| c.size_bytes).sum()
}

/// Returns the bytes that the application wrote.
pub(crate) fn written_bytes(bundle: &Bundle) -> u64 {
    data_classes(bundle).filter(|c| !c.is_read).map(|c| c.size_bytes).sum()
}

/// Returns the number of reads, or of writes if `reads` is false.
pub(crate) fn operations(bundle: &Bundle, reads: bool) -> u64 {
    data_classes(bundle).filter(|c| c.is_read == reads).map(|c| c.count).sum()
}

/// Returns the number of reads or writes of the workload, without reads that verify.
pub(crate) fn workload_operations(bundle: &Bundle, reads: bool) -> u64 {
    let of = |c: &&ClassTotals| c.is_read == reads && c.group != VERIFY_GROUP;
    data_classes(bundle).filter(of).map(|c| c.count).sum()
}

/// Returns the number of operations that moved no bytes. They never completed, or were never
/// submitted.
pub(crate) fn unfinished(bundle: &Bundle) -> u64 {
    data_classes(bundle).filter_map(ClassTotals::unfinished).sum()
}

/// Returns the devices directly under the target's file systems; `None` if none is known.
pub(crate) fn top_devices(bundle: &Bundle) -> Option<Vec<&DeviceTotals>> {
    let devices: Vec<_> = bundle.observed.devices.iter().filter(|device| device.top).collect();
    (!devices.is_empty()).then_some(devices)
}

/// Returns the disks at the bottom, unless they are the top devices themselves.
pub(crate) fn bottom_devices(bundle: &Bundle) -> Option<Vec<&DeviceTotals>> {
    let known = &bundle.environment.devices;
    let is_bottom = |device: &&DeviceTotals| {
        let described = known.iter().find(|d| d.name == device.name);
        !device.top && described.is_some_and(|d| d.kind == "disk")
    };
    let devices: Vec<_> = bundle.observed.devices.iter().filter(is_bottom).collect();
    (!devices.is_empty()).then_some(devices)
}

/// Returns the gap that explains why the storage's work was not observed, and how to observe it.
pub(crate) fn storage_unseen(bundle: &Bundle) -> Option<&ObservationGap> {
    bundle.observed.unknown.iter().find(|unknown| unknown.what.starts_with("what the storage"))
}

/// Returns device bytes over application bytes for reads. Measured: 0.001 from the page cache, 1.00
/// with direct I/O, 2.03 with another process on the disk. `None` if too few bytes were read, or if
/// no device is known.
pub(crate) fn read_ratio(bundle: &Bundle) -> Option<f64> {
    let app = read_bytes(bundle);
    let device: u64 = top_devices(bundle)?.iter().map(|device| device.read_bytes).sum();
    (app >= RATIO_BYTES_MIN).then(|| device as f64 / app as f64)
}

/// Returns device bytes over application bytes for writes.
pub(crate) fn write_ratio(bundle: &Bundle) -> Option<f64> {
    let app = written_bytes(bundle);
    let device: u64 = top_devices(bundle)?.iter().map(|device| device.written_bytes).sum();
    (app >= RATIO_BYTES_MIN).then(|| device as f64 / app as f64)
}

/// Assumption of findings that rely on a storage system's own counters, as the plan declares them.
pub(super) const METRICS: &str = "the meaning of the metrics in the plan";

/// Allowed relative error of the counters, in addition to changes between two readings.
const COUNTERS_SLACK: f64 = 0.1;

/// Returns the reason why the counters of read sources are unusable; `None` if they agree with the
/// load. They count reads or bytes.
pub(super) fn counters_unsure(bundle: &Bundle) -> Option<String> {
    let from = &bundle.observed.sources.reads_from;
    if !from.contains_key("cache") {
        return Some(
            "the named metrics give the sources of reads, but none of them is a cache".into(),
        );
    }
    let all: f64 = from.values().sum();
    let interval_ns = bundle.plan.observe.metrics.iter().map(|m| m.interval_ns).max().unwrap_or(0);
    let measured_ns = measured(bundle)?.duration_ns;
    let slack = COUNTERS_SLACK + interval_ns as f64 / measured_ns as f64;
    let (reads, bytes) = (operations(bundle, true) as f64, read_bytes(bundle) as f64);
    let agrees = |issued: f64| (all / issued.max(1.0) - 1.0).abs() <= slack;
    if agrees(reads) || agrees(bytes) {
        return None;
    }
    Some(format!(
        "the storage system's counters show {all:.0}, but {reads:.0} reads of {} were issued: \
         they count something else, or omit a source",
        size(bytes as u64)
    ))
}

/// Returns the share of holes and unwritten extents; `None` for an empty file.
pub(crate) fn empty_share(extents: &Extents) -> Option<f64> {
    let empty = extents.hole_bytes + extents.unwritten_bytes.unwrap_or(0);
    (extents.size_bytes > 0).then(|| empty as f64 / extents.size_bytes as f64)
}

/// Returns the paths whose I/O passes through the page cache.
pub(crate) fn buffered_paths(bundle: &Bundle) -> Vec<&str> {
    let paths = bundle.run.engine.paths.iter().filter(|path| !path.direct);
    paths.map(|path| path.path.as_str()).collect()
}

/// Formats bytes with a binary unit (powers of 1024).
pub(crate) fn size(bytes: u64) -> String {
    let (kib, mib, gib) = (1u64 << 10, 1u64 << 20, 1u64 << 30);
    let of = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        b if b >= gib => format!("{:.2} GiB", of(gib)),
        b if b >= mib => format!("{:.1} MiB", of(mib)),
        b if b >= kib => format!("{:.0} KiB", of(kib)),
        b => format!("{b} B"),
    }
}

/// Formats a share as a percentage, with one decimal if it is below 10 %.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
