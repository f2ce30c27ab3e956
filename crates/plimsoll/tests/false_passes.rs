//! Tricks that passed once, on real file systems: each must be refused by what it is. Needs root.
//!
//! By default on ext4 and XFS. `PLIMSOLL_STACKS=all` adds Btrfs, a block device and the file system
//! that holds the build.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use support::{LoopDevice, LoopFs, Sandbox, found, tool};

/// Storage that a trick is played on.
enum Stack {
    FileSystem(LoopFs),
    Device(LoopDevice),
    Directory(PathBuf),
}

impl Stack {
    fn target(&self) -> String {
        match self {
            Self::FileSystem(fs) => format!("path = {:?}", fs.mount.display().to_string()),
            Self::Device(device) => format!("device = {:?}", device.name),
            Self::Directory(path) => format!("path = {:?}", path.display().to_string()),
        }
    }

    /// The block device that can be throttled.
    fn device(&self) -> Option<&str> {
        match self {
            Self::FileSystem(fs) => Some(&fs.device),
            Self::Device(device) => Some(&device.name),
            Self::Directory(_) => None,
        }
    }

    fn has_names(&self) -> bool {
        !matches!(self, Self::Device(_))
    }
}

/// Calls `each` with every stack, one after the other.
fn on_each_stack(each: impl Fn(&str, &Sandbox, &Stack)) {
    let all = std::env::var("PLIMSOLL_STACKS").is_ok_and(|stacks| stacks == "all");
    let names =
        if all { &["ext4", "xfs", "btrfs", "device", "directory"][..] } else { &["ext4", "xfs"] };
    for name in names {
        let sandbox = Sandbox::new();
        let root = sandbox.root.path();
        let stack = match *name {
            "device" => Stack::Device(LoopDevice::new(root, 128)),
            "directory" => Stack::Directory(sandbox.data()),
            kind => Stack::FileSystem(LoopFs::new(root, kind, 400, "noatime")),
        };
        eprintln!("on {name}");
        each(name, &sandbox, &stack);
    }
}

/// Runs a plan of two seconds and returns its verdict. `loads` are the lines of each stream.
fn verdict(sandbox: &Sandbox, stack: &Stack, requirement: &str, loads: &[&str]) -> Value {
    judged(sandbox, stack, requirement, loads, None, &[])
}

fn judged(
    sandbox: &Sandbox,
    stack: &Stack,
    requirement: &str,
    loads: &[&str],
    throttle: Option<&Throttle>,
    environment: &[(&str, &str)],
) -> Value {
    let stream = |lines: &&str| {
        let of_files = |line: &&str| stack.has_names() || !line.starts_with("file_size");
        let lines: Vec<&str> = lines.lines().filter(of_files).collect();
        format!("[[workload.matrix]]\n{}\n", lines.join("\n"))
    };
    let streams: Vec<String> = loads.iter().map(stream).collect();
    let text = format!(
        "version = 1\nname = \"trick\"\n[requirement]\n{requirement}\n[target]\n{}\n{}[phases]\n\
         warm_up = \"300ms\"\nmeasure = \"6s\"\nverify = true\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n",
        stack.target(),
        streams.concat()
    );
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, text).unwrap();
    let mut arguments = vec!["run", plan.to_str().unwrap(), "--json", "-q"];
    if let Stack::Device(device) = stack {
        arguments.extend(["--destroy", &device.name]);
    }
    let mut command = sandbox.command(&arguments);
    command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    if let Some(throttle) = throttle {
        throttle.take_in(child.id());
    }
    let output = child.wait_with_output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(verdict["checks"].is_array(), "{verdict} {stderr}");
    verdict
}

fn check<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let checks = verdict["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)
}

/// Control group that limits the operations of one device for its processes; removed when dropped.
struct Throttle {
    group: PathBuf,
    numbers: String,
}

impl Throttle {
    fn new(device: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let numbers = tool("lsblk", &["-dno", "MAJ:MIN", device]);
        let first = Path::new("/sys/fs/cgroup/blkio");
        let root = if first.is_dir() { first } else { Path::new("/sys/fs/cgroup") };
        let group = root.join(format!("plimsoll-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        Self { group, numbers }
    }

    /// Sets the operations a second; `None` lifts the limit.
    fn limit(&self, rate: Option<u32>) {
        if self.group.join("io.max").exists() {
            let word = rate.map_or("max".to_owned(), |rate| rate.to_string());
            let line = format!("{} riops={word} wiops={word}", self.numbers);
            std::fs::write(self.group.join("io.max"), line).unwrap();
            return;
        }
        for direction in ["read", "write"] {
            let file = self.group.join(format!("blkio.throttle.{direction}_iops_device"));
            std::fs::write(file, format!("{} {}", self.numbers, rate.unwrap_or(0))).unwrap();
        }
    }

    fn take_in(&self, process: u32) {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.group);
    }
}

const RECORDS: &str = "sizes = \"2300B\"\nreads = 0\npatterns = \"sequential\"\n\
                       sync = \"fdatasync\"\ndirect = \"off\"\nqueue_depth = 1\n\
                       file_size = \"4600000B\"";
#[test]
fn a_log_whose_flush_takes_ten_times_the_limit_fails() {
    on_each_stack(|name, sandbox, stack| {
        // Buffered writes of a whole block device would take minutes under this throttle.
        let Some(device) = stack.device().filter(|_| stack.has_names()) else { return };
        let limits = "sync_latency_p99 = \"10ms\"\nwrite_latency_p99 = \"10ms\"";
        let throttle = Throttle::new(device);
        throttle.limit(Some(10));
        let slow = judged(sandbox, stack, limits, &[RECORDS], Some(&throttle), &[]);
        assert_eq!(slow["verdict"], "FAIL", "{name}: {slow:#}");
        for limit in ["sync_latency_p99", "write_latency_p99"] {
            let row = check(&slow, limit);
            assert_eq!(row["ok"], false, "{name}: {row}");
            assert!(row["measured_ns"].as_u64().unwrap() > 50_000_000, "{name}: {row}");
        }
        // Whatever else uses this disk, a flush without the throttle takes no second.
        let limits = "sync_latency_p99 = \"1s\"\nwrite_latency_p99 = \"1s\"";
        let fast = verdict(sandbox, stack, limits, &[RECORDS]);
        for limit in ["sync_latency_p99", "write_latency_p99"] {
            assert_ne!(check(&fast, limit)["ok"], false, "{name}: {fast:#}");
        }
    });
}

#[test]
fn a_closed_loop_does_not_hide_that_its_device_stalls_every_fifth_second() {
    on_each_stack(|name, sandbox, stack| {
        let Some(device) = stack.device() else { return };
        let throttle = Throttle::new(device);
        let stalled = std::thread::scope(|scope| {
            // Longer than the run: a test that fails does not wait for ever.
            scope.spawn(|| {
                for _ in 0..8 {
                    throttle.limit(None);
                    std::thread::sleep(Duration::from_millis(1200));
                    throttle.limit(Some(4));
                    std::thread::sleep(Duration::from_millis(600));
                }
                throttle.limit(None);
            });
            let reads = "reads = 100\nqueue_depth = 1\nfile_size = \"64MiB\"";
            let limit = "read_latency_p99 = \"20ms\"";
            judged(sandbox, stack, limit, &[reads], Some(&throttle), &[])
        });
        let row = check(&stalled, "read_latency_p99");
        assert_ne!(row["ok"], true, "{name}: {stalled:#}");
        assert_ne!(stalled["verdict"], "PASS", "{name}");
    });
}

#[test]
fn small_buffered_operations_do_not_hide_behind_the_bytes_of_large_direct_ones() {
    on_each_stack(|name, sandbox, stack| {
        for reads in [100, 0] {
            // Btrfs brings each of these writes to the disk by itself: nothing hides.
            if name == "btrfs" && reads == 0 {
                continue;
            }
            let small = format!(
                "name = \"small\"\nsizes = \"4KiB\"\nreads = {reads}\ndirect = \"off\"\n\
                 file_size = \"16MiB\"\nqueue_depth = 1"
            );
            let large = format!(
                "name = \"large\"\nsizes = \"1MiB\"\nreads = {reads}\ndirect = \"required\"\n\
                 file_size = \"32MiB\"\nqueue_depth = 8"
            );
            let verdict = verdict(sandbox, stack, "iops = 10", &[&small, &large]);
            let found = found(&verdict, "bytes-balance");
            assert_ne!(found, "pass", "{name}, {reads} % reads: {verdict:#}");
        }
    });
}

#[test]
fn operations_on_names_are_no_answer_to_limits_on_reads() {
    on_each_stack(|name, sandbox, stack| {
        if !stack.has_names() {
            return;
        }
        let load = "metadata = 99\nmetadata_mix = { getattr = 100, lookup = 0, access = 0, readdir = 0, \
                    create = 0, remove = 0, rename = 0, setattr = 0 }\nreads = 100\n\
                    file_size = \"32MiB\"\nqueue_depth = 4\ndirect = \"required\"";
        let verdict = verdict(sandbox, stack, "iops = 100000\nlatency_p99 = \"40us\"", &[load]);
        assert_ne!(check(&verdict, "latency_p99")["ok"], true, "{name}: {verdict:#}");
        assert_ne!(check(&verdict, "iops")["ok"], true, "{name}: {verdict:#}");
    });
}

#[test]
fn a_capacity_that_the_load_never_touches_is_not_met() {
    on_each_stack(|name, sandbox, stack| {
        let load = "reads = 100\nfile_size = \"96MiB\"\nworking_set = \"4KiB\"";
        let verdict = verdict(sandbox, stack, "iops = 10\ncapacity = \"90MiB\"", &[load]);
        assert_ne!(check(&verdict, "capacity")["ok"], true, "{name}: {verdict:#}");
    });
}

/// Copies of a library of the distribution: their owner can put anything into them.
#[test]
fn a_library_that_is_not_the_distributions_is_named_whichever_way_it_came_in() {
    let sandbox = Sandbox::new();
    let stack = Stack::Directory(sandbox.data());
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let mapped = tool("ldd", &[program]);
    let library = mapped.split_whitespace().find(|word| word.starts_with('/')).unwrap();
    let directory = sandbox.path("lib");
    std::fs::create_dir(&directory).unwrap();
    let copy = directory.join(Path::new(library).file_name().unwrap());
    std::fs::copy(library, &copy).unwrap();
    let (directory, copy) = (directory.display().to_string(), copy.display().to_string());
    for way in [("LD_LIBRARY_PATH", directory.as_str()), ("LD_PRELOAD", &copy), ("LD_AUDIT", &copy)]
    {
        let load = "reads = 100\nfile_size = \"16MiB\"";
        let verdict = judged(&sandbox, &stack, "iops = 10", &[load], None, &[way]);
        assert_ne!(found(&verdict, "stands-between"), "pass", "{way:?}: {verdict:#}");
    }
    let honest = verdict(&sandbox, &stack, "iops = 10", &["reads = 100\nfile_size = \"16MiB\""]);
    assert_eq!(found(&honest, "stands-between"), "pass", "{honest:#}");
}
