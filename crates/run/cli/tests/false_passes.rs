//! Tests of tricks that an earlier version passed, on real file systems. Each trick must be
//! rejected for the right reason. Needs root.
//!
//! By default a few variants run, on ext4 and XFS. `PLIMSOLL_STACKS=all` runs all of them.
//!
//! | kind | variants |
//! |---|---|
//! | durable writes without their flush | `fdatasync`, `fsync`, `dsync`, one flush for eight writes; buffered and direct; 2300 B to 64 KiB; one and four clients; limits on flushes, on writes, on all operations; ext4, XFS, Btrfs, a device |
//! | a device that stalls | 0.6 s of every 1.8 s and 1 s of every 3 s; reads, writes, both; 4 KiB and 64 KiB; depths 1 and 8; p90, p95, p99; ext4, XFS, Btrfs, a device |
//! | small buffered operations at the same time as large direct operations | reads, writes, both; random and sequential; one and three small streams; 4 and 16 KiB with 256 KiB and 1 MiB; ext4, XFS, Btrfs, a device, a directory |
//! | operations on names | `getattr`, `access`, `lookup`; 90 to 99.5 %; limits on reads, on writes, on all operations; depths 1 to 8; ext4, XFS, Btrfs, a directory |
//! | a small part of the capacity | a working set of 4 KiB and 1 MiB, read and written, at an offset; one block of each MiB; a hot spot; an idle stream on all other blocks; ext4, XFS, Btrfs, a device, a directory |
//! | a library that can respond in place of the kernel | `LD_LIBRARY_PATH` with a copy and with a link; `LD_PRELOAD` of a copy and of a library that responds to `pread64`; `LD_AUDIT`; two libraries; a directory, ext4, a device |
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;
use support::throttle::{DeviceSpeed, SpeedControl};
use support::tricks::{Corner, Library, Role, Trick, row};
use support::{LoopDevice, LoopFs, Sandbox};

/// Storage on which a trick is performed.
enum Stack {
    FileSystem(LoopFs),
    Device(LoopDevice),
    Directory(PathBuf),
}

impl Stack {
    fn new(name: &str, sandbox: &Sandbox) -> Self {
        let root = sandbox.root.path();
        match name {
            "device" => Self::Device(LoopDevice::new(root, 128)),
            "directory" => Self::Directory(sandbox.data()),
            kind => Self::FileSystem(LoopFs::new(root, kind, 400, "noatime")),
        }
    }

    fn target(&self) -> String {
        match self {
            Self::FileSystem(fs) => format!("path = {:?}", fs.mount.display().to_string()),
            Self::Device(device) => format!("device = {:?}", device.name),
            Self::Directory(path) => format!("path = {:?}", path.display().to_string()),
        }
    }

    /// Returns the block device whose speed can be limited.
    fn device(&self) -> Option<&str> {
        match self {
            Self::FileSystem(fs) => Some(&fs.device),
            Self::Device(device) => Some(&device.name),
            Self::Directory(_) => None,
        }
    }
}

/// Condition under which a variant is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// The variant only runs with `PLIMSOLL_STACKS=all`.
    All,
}
use When::{All, Always};

/// A trick on a storage stack, and the honest twins that are run after it.
type Variant = (When, &'static str, Trick, &'static [Role]);

fn all_run() -> bool {
    std::env::var("PLIMSOLL_STACKS").is_ok_and(|stacks| stacks == "all")
}

/// Runs each selected variant and its twins. Returns the verdicts of the tricks.
#[track_caller]
fn play(variants: &[Variant], measure_ms: u64) -> Vec<Value> {
    assert!(variants.len() >= 5, "{} variants", variants.len());
    let all = all_run();
    let due = variants.iter().filter(|(when, ..)| all || *when == Always);
    let mut verdicts = Vec::new();
    for (_, stack, trick, twins) in due {
        verdicts.push(judged(stack, *trick, Role::Trick, measure_ms));
        for role in *twins {
            judged(stack, *trick, *role, measure_ms);
        }
    }
    verdicts
}

/// Runs a plan that takes a few seconds, and checks its verdict.
#[track_caller]
fn judged(name: &str, trick: Trick, role: Role, measure_ms: u64) -> Value {
    eprintln!("{role:?} on {name}: {trick:?}");
    let sandbox = Sandbox::new();
    let stack = Stack::new(name, &sandbox);
    let set_up = trick.set_up(role);
    let plan = sandbox.path("plan.toml");
    let text = set_up.plan(&stack.target(), measure_ms);
    std::fs::write(&plan, &text).unwrap();
    let mut arguments = vec!["run", plan.to_str().unwrap(), "--json", "-q"];
    if let Stack::Device(device) = &stack {
        arguments.extend(["--destroy", &device.name]);
    }
    let mut command = sandbox.command(&arguments);
    command.envs(set_up.environment(&sandbox)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let control = stack.device().and_then(|device| SpeedControl::start(set_up.speed, device));
    let child = command.spawn().unwrap();
    if let Some(control) = &control {
        assert!(control.take_in(child.id()), "the run ended at once");
    }
    let output = child.wait_with_output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(verdict["checks"].is_array(), "{name}: {trick:?}: {verdict} {stderr}\n{text}");
    let differences = set_up.expected.differences(&verdict);
    let says: Vec<&str> = differences.iter().map(|difference| difference.says.as_str()).collect();
    assert!(says.is_empty(), "{role:?} on {name}: {trick:?}: {says:?}\n{text}\n{verdict:#}");
    verdict
}

const fn flush(
    sync: &'static str,
    size_bytes: u64,
    direct: &'static str,
    clients: u32,
    limit: &'static str,
) -> Trick {
    Trick::SlowFlush { sync, sync_every: 1, size_bytes, direct, clients, reads: 0, limit }
}

/// Eight writes wait for the same flush.
const SHARED_FLUSH: Trick = Trick::SlowFlush {
    sync: "fdatasync",
    sync_every: 8,
    size_bytes: 4096,
    direct: "off",
    clients: 1,
    reads: 0,
    limit: "write_latency_p50",
};

#[test]
fn a_log_whose_flush_takes_ten_times_the_limit_fails() {
    let fdatasync = |limit| flush("fdatasync", 2300, "off", 1, limit);
    let variants: [Variant; 8] = [
        (Always, "ext4", fdatasync("write_latency_p99"), &[Role::TwinWithout]),
        (Always, "xfs", fdatasync("sync_latency_p99"), &[Role::TwinWithout]),
        (All, "ext4", flush("fsync", 4096, "required", 4, "write_latency_p99"), &[Role::TwinMet]),
        (Always, "xfs", flush("dsync", 16384, "off", 1, "write_latency_p99"), &[]),
        (All, "btrfs", flush("fsync", 4096, "off", 1, "latency_p99"), &[Role::TwinWithout]),
        (All, "ext4", SHARED_FLUSH, &[Role::TwinWithout]),
        (All, "device", flush("fdatasync", 4096, "required", 1, "latency_p50"), &[Role::TwinMet]),
        (All, "device", flush("dsync", 65536, "required", 1, "write_latency_avg"), &[]),
    ];
    for verdict in play(&variants, 6000) {
        assert_eq!(verdict["verdict"], "FAIL", "{verdict:#}");
    }
}

/// Returns the verdict of the built-in plan for etcd on ext4.
fn etcd_verdict(speed: DeviceSpeed, measure_s: u64) -> Value {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 400, "noatime");
    let sets = [
        "phases.warm_up=1s".to_owned(),
        format!("phases.measure={measure_s}s"),
        format!("evidence.min_measure={measure_s}s"),
    ];
    let mount = fs.mount.to_str().unwrap();
    let mut arguments = vec!["run", "container-volume", "--path", mount, "--json", "-q"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let mut command = sandbox.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(control) = &SpeedControl::start(speed, &fs.device) {
        assert!(control.take_in(child.id()), "the run ended at once");
        return ended(child);
    }
    ended(child)
}

fn ended(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[test]
fn the_plan_for_etcd_fails_on_a_slow_disk_and_passes_on_a_fast_one() {
    let slow = etcd_verdict(DeviceSpeed::Limited(40), 10);
    assert_eq!(slow["verdict"], "FAIL", "{slow:#}");
    for name in ["sync_latency_p99", "write_latency_p99"] {
        assert_eq!(row(&slow, name)["ok"], false, "{slow:#}");
    }
    // A measurement of at least 30 s can pass. A shorter measurement only lacks this condition.
    let fast = etcd_verdict(DeviceSpeed::Full, if all_run() { 31 } else { 10 });
    let is_slow = |name| row(&fast, name)["measured_ns"].as_u64().unwrap() > 10_000_000;
    if is_slow("sync_latency_p99") || is_slow("write_latency_p99") {
        eprintln!("not tested here: others use the disk, and its flushes are slow");
        assert_ne!(fast["verdict"], "PASS", "{fast:#}");
    } else if all_run() {
        assert_eq!(fast["verdict"], "PASS", "{fast:#}");
    } else {
        assert_eq!(fast["verdict"], "INCONCLUSIVE", "{fast:#}");
        assert!(fast["reason"].as_str().unwrap().starts_with("measured for 10.0 s"), "{fast:#}");
    }
}

const fn stall(reads: u32, depth: u32, size_kib: u64, limit: &'static str) -> Trick {
    Trick::Stalls { fast_ms: 1200, slow_ms: 600, depth, size_kib, reads, limit }
}

#[test]
fn a_closed_loop_does_not_hide_that_its_device_stalls_every_third_second() {
    let longer = |limit| Trick::Stalls {
        fast_ms: 2000,
        slow_ms: 1000,
        depth: 1,
        size_kib: 4,
        reads: 100,
        limit,
    };
    let variants: [Variant; 7] = [
        (Always, "ext4", stall(100, 1, 4, "read_latency_p99"), &[]),
        (Always, "xfs", stall(0, 8, 4, "write_latency_p95"), &[]),
        (All, "xfs", stall(100, 1, 64, "latency_p99"), &[Role::TwinMet]),
        (All, "ext4", longer("read_latency_p90"), &[Role::TwinWithout]),
        (All, "btrfs", stall(100, 1, 4, "read_latency_p99"), &[]),
        (All, "device", stall(50, 1, 4, "write_latency_p99"), &[Role::TwinMet]),
        (All, "device", stall(100, 8, 4, "read_latency_p95"), &[]),
    ];
    // The row is undecided only because the run is short.
    play(&variants, if all_run() { 31_000 } else { 6000 });
}

const fn small(
    reads: u32,
    small_kib: u64,
    large_kib: u64,
    streams: u32,
    pattern: &'static str,
) -> Trick {
    Trick::SmallBuffered { reads, small_kib, large_kib, streams, pattern }
}

#[test]
fn small_buffered_operations_do_not_hide_behind_the_bytes_of_large_direct_ones() {
    // Btrfs writes each buffered write to the disk itself, so there is nothing to detect.
    let variants: [Variant; 8] = [
        (Always, "ext4", small(100, 4, 1024, 1, "random"), &[Role::TwinWithout]),
        (Always, "ext4", small(0, 4, 1024, 1, "random"), &[]),
        (Always, "xfs", small(100, 16, 256, 3, "random"), &[]),
        (Always, "xfs", small(0, 4, 1024, 1, "random"), &[Role::TwinWithout]),
        (All, "xfs", small(50, 4, 1024, 1, "random"), &[]),
        (All, "btrfs", small(100, 4, 1024, 1, "sequential"), &[Role::TwinWithout]),
        (All, "device", small(100, 4, 1024, 1, "random"), &[Role::TwinWithout]),
        (All, "directory", small(0, 16, 256, 3, "sequential"), &[Role::TwinWithout]),
    ];
    play(&variants, 3000);
}

const fn names(
    metadata: &'static str,
    operation: &'static str,
    reads: u32,
    depth: u32,
    limit: &'static str,
) -> Trick {
    Trick::Names { metadata, operation, size_kib: 4, reads, depth, limit }
}

#[test]
fn operations_on_names_are_no_answer_to_limits_on_reads() {
    let variants: [Variant; 6] = [
        (Always, "ext4", names("99", "getattr", 100, 4, "latency_p99"), &[]),
        (Always, "xfs", names("99.5", "getattr", 100, 1, "read_latency_p99"), &[Role::TwinMet]),
        (All, "ext4", names("90", "access", 70, 8, "latency_p99"), &[Role::TwinWithout]),
        (All, "xfs", names("95", "lookup", 0, 4, "write_latency_p99"), &[]),
        (All, "btrfs", names("99", "getattr", 100, 4, "latency_p95"), &[Role::TwinMet]),
        (All, "directory", names("98", "getattr", 50, 4, "read_latency_p50"), &[Role::TwinMet]),
    ];
    play(&variants, 3000);
}

#[test]
fn a_capacity_that_the_load_never_touches_is_not_met() {
    let corner = |kib, reads| Trick::Corner(Corner::WorkingSet { kib, reads });
    let variants: [Variant; 8] = [
        (Always, "ext4", corner(4, 100), &[]),
        (Always, "xfs", Trick::Corner(Corner::Hot), &[Role::TwinWithout]),
        (All, "xfs", corner(1024, 0), &[Role::TwinWithout]),
        (All, "ext4", Trick::Corner(Corner::Offset { kib: 1024 }), &[]),
        (All, "ext4", Trick::Corner(Corner::IdleStream), &[]),
        (All, "btrfs", Trick::Corner(Corner::Aligned), &[Role::TwinWithout]),
        (All, "device", corner(64, 100), &[]),
        (All, "directory", corner(1024, 50), &[Role::TwinWithout]),
    ];
    for verdict in play(&variants, 3000) {
        assert_ne!(row(&verdict, "capacity")["ok"], true, "{verdict:#}");
    }
}

/// A copy of a distribution's library is reported, however it is loaded. The owner of a copy can
/// change its contents.
#[test]
fn a_library_that_is_not_the_distributions_is_named_whichever_way_it_came_in() {
    let variants: [Variant; 7] = [
        (Always, "directory", Trick::Library(Library::Path(0)), &[Role::TwinWithout]),
        (Always, "directory", Trick::Library(Library::Preload(0)), &[]),
        (Always, "directory", Trick::Library(Library::Audit(0)), &[]),
        (Always, "directory", Trick::Library(Library::Answers), &[]),
        (All, "ext4", Trick::Library(Library::Path(1)), &[Role::TwinWithout]),
        (All, "ext4", Trick::Library(Library::Link(0)), &[]),
        (All, "device", Trick::Library(Library::Preload(1)), &[]),
    ];
    play(&variants, 3000);
}
