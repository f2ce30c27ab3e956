//! Set-ups that an earlier version passed by mistake, each with an honest twin.

use std::path::Path;

use serde_json::Value;

use super::throttle::DeviceSpeed;
use super::{Sandbox, found, tool};

/// A kind of trick, and its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Trick {
    /// The device is slow at each flush, and the requirement limits the latency of durable writes.
    SlowFlush {
        sync: &'static str,
        sync_every: u32,
        size_bytes: u64,
        direct: &'static str,
        clients: u32,
        reads: u32,
        /// Row of the requirement whose limit the flushes exceed.
        limit: &'static str,
    },
    /// The device stalls; a closed loop issues no operations meanwhile.
    Stalls {
        fast_ms: u64,
        slow_ms: u64,
        depth: u32,
        size_kib: u64,
        reads: u32,
        limit: &'static str,
    },
    /// Small buffered operations, at the same time as large direct operations that move most of the
    /// bytes.
    SmallBuffered {
        reads: u32,
        small_kib: u64,
        large_kib: u64,
        /// Number of small streams.
        streams: u32,
        pattern: &'static str,
    },
    /// Operations on names and attributes, which the kernel serves from memory.
    Names {
        metadata: &'static str,
        /// The only operation on names.
        operation: &'static str,
        size_kib: u64,
        reads: u32,
        depth: u32,
        limit: &'static str,
    },
    /// A load that uses only a small part of the required capacity.
    Corner(Corner),
    /// A library that can respond in place of the kernel.
    Library(Library),
}

/// Reasons why a load does not use most of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// A working set of this size, with this percentage of reads.
    WorkingSet { kib: u64, reads: u32 },
    /// A working set at an offset.
    Offset { kib: u64 },
    /// The operations use only one block in each MiB.
    Aligned,
    /// Nearly all operations use a thousandth of the space.
    Hot,
    /// One stream covers the whole capacity, but is so slow that it accesses almost nothing.
    /// Another stream uses a small part of the capacity.
    IdleStream,
}

/// Ways in which a library is loaded into the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// A copy of one of the program's libraries (the library with this index). The copy is loaded
    /// before the distribution's own library.
    Path(usize),
    Preload(usize),
    Audit(usize),
    /// A preloaded library that responds to `pread64`.
    Answers,
    /// A copy of one of the program's libraries, loaded through `LD_LIBRARY_PATH` and a link to the
    /// copy.
    Link(usize),
}

/// Role of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Trick,
    /// The honest twin, which does not use the trick.
    TwinWithout,
    /// The honest twin on the same storage, with a requirement that this storage meets.
    TwinMet,
}

/// A stream of a set-up. If `lines` contain a working set, they determine the stream's region of a
/// device; otherwise `size_bytes` determines it.
pub struct Stream {
    lines: String,
    size_bytes: u64,
}

/// A set-up that can be converted to a plan.
pub struct SetUp {
    requirement: String,
    streams: Vec<Stream>,
    verify: bool,
    pub speed: DeviceSpeed,
    library: Option<Library>,
    pub expected: ExpectedVerdict,
}

/// Properties that the verdict on a set-up must have.
#[derive(Clone, Debug, Default)]
pub struct ExpectedVerdict {
    /// Reason why a PASS is false; `None` for an honest twin.
    pub no_pass: Option<String>,
    /// Rows whose limits must be exceeded, each with the smallest latency that the row may show.
    broken: Vec<(&'static str, u64)>,
    /// Rows whose limits must not be exceeded.
    kept: Vec<&'static str>,
    /// Rule that must not pass.
    open: Option<&'static str>,
    /// Rule that must pass.
    passed: Option<&'static str>,
}

/// A difference between a verdict and the expected verdict.
pub struct Difference {
    /// True if the verdict accepts something false; false if it rejects something honest.
    pub accepts: bool,
    pub says: String,
}

const MIB: u64 = 1 << 20;
/// Operations per second of a device with slow flushes.
const SLOW_RATE: u32 = 10;
/// Operations per second while a device stalls.
const STALL_RATE: u32 = 4;
/// A limit that flushes at [`SLOW_RATE`] exceed. Even if other processes use the disk, flushes take
/// less than [`GENEROUS`].
const SLOW_LIMIT: &str = "10ms";
const GENEROUS: &str = "3s";
/// A limit that even the slow device does not exceed.
const PATIENT: &str = "60s";
const MS_AS_NS: u64 = 1_000_000;
/// Size of the files in MiB. A trick only uses a small part of them.
const ROOM_MIB: u64 = 96;

impl Trick {
    /// Name of the kind.
    pub fn label(self) -> &'static str {
        match self {
            Self::SlowFlush { .. } => "slow flushes",
            Self::Stalls { .. } => "stalls",
            Self::SmallBuffered { .. } => "small buffered operations",
            Self::Names { .. } => "operations on names",
            Self::Corner(_) => "a corner of the capacity",
            Self::Library(_) => "a library",
        }
    }

    /// Returns true if the trick needs a device whose speed can be limited.
    pub fn limits_device(self) -> bool {
        matches!(self, Self::SlowFlush { .. } | Self::Stalls { .. })
    }

    /// Returns true if the trick needs files.
    pub fn needs_names(self) -> bool {
        match self {
            Self::Names { .. } => true,
            // Direct I/O on a device needs whole blocks, and buffered layouts of a throttled device
            // take minutes.
            Self::SlowFlush { direct, .. } => direct == "off",
            _ => false,
        }
    }

    pub fn set_up(self, role: Role) -> SetUp {
        match self {
            Self::SlowFlush { .. } => self.slow_flush(role),
            Self::Stalls { .. } => self.stalls(role),
            Self::SmallBuffered { .. } => self.small_buffered(role),
            Self::Names { .. } => self.names(role),
            Self::Corner(corner) => corner.set_up(role),
            Self::Library(library) => {
                let mut set_up = SetUp::new("iops = 1", [Stream::new("reads = 100", 16 * MIB)]);
                match role {
                    Role::Trick => {
                        set_up.library = Some(library);
                        set_up.open("stands-between", "a library can answer for the kernel");
                    }
                    _ => set_up.expected.passed = Some("stands-between"),
                }
                set_up
            }
        }
    }

    fn slow_flush(self, role: Role) -> SetUp {
        let Self::SlowFlush { sync, sync_every, size_bytes, direct, clients, reads, limit } = self
        else {
            unreachable!("another kind")
        };
        let every =
            if sync_every > 1 { format!("sync_every = {sync_every}\n") } else { String::new() };
        let lines = format!(
            "sizes = \"{size_bytes}B\"\nreads = {reads}\npatterns = \"sequential\"\nsync = \
             {sync:?}\n{every}direct = {direct:?}\nqueue_depth = 1\nclients = {clients}"
        );
        let limit_text = match role {
            Role::Trick => SLOW_LIMIT,
            Role::TwinWithout => GENEROUS,
            Role::TwinMet => PATIENT,
        };
        let requirement = format!("{limit} = {limit_text:?}");
        let mut set_up = SetUp::new(&requirement, [Stream::new(&lines, size_bytes * 2000)]);
        if role != Role::TwinWithout {
            set_up.speed = DeviceSpeed::Limited(SLOW_RATE);
        }
        if role == Role::Trick {
            // If a process waits for a CPU between flushes, the throttle accumulates credit, and
            // some of the next flushes are fast.
            set_up.breaks(limit, 10 * MS_AS_NS, "each flush takes ten times the limit");
        } else {
            set_up.expected.kept.push(limit);
        }
        set_up
    }

    fn stalls(self, role: Role) -> SetUp {
        let Self::Stalls { fast_ms, slow_ms, depth, size_kib, reads, limit } = self else {
            unreachable!("another kind")
        };
        let lines = format!("sizes = \"{size_kib}KiB\"\nreads = {reads}\nqueue_depth = {depth}");
        let limit_text = match role {
            Role::Trick => "20ms",
            Role::TwinWithout => GENEROUS,
            Role::TwinMet => PATIENT,
        };
        let requirement = format!("{limit} = {limit_text:?}");
        let mut set_up = SetUp::new(&requirement, [Stream::new(&lines, 32 * MIB)]);
        if role != Role::TwinWithout {
            set_up.speed = DeviceSpeed::Stalling { fast_ms, slow_ms, rate: STALL_RATE };
        }
        if role == Role::Trick {
            set_up.breaks(limit, 0, "the device stalls for more of the time than the limit allows");
        } else {
            set_up.expected.kept.push(limit);
        }
        set_up
    }

    fn small_buffered(self, role: Role) -> SetUp {
        let Self::SmallBuffered { reads, small_kib, large_kib, streams, pattern } = self else {
            unreachable!("another kind")
        };
        let direct = if role == Role::Trick { "off" } else { "required" };
        let small = |number| {
            let lines = format!(
                "name = \"small-{number}\"\nsizes = \"{small_kib}KiB\"\nreads = {reads}\ndirect = \
                 {direct:?}\nqueue_depth = 1\npatterns = {pattern:?}"
            );
            Stream::new(&lines, 12 * MIB)
        };
        let large = format!(
            "name = \"large\"\nsizes = \"{large_kib}KiB\"\nreads = {reads}\ndirect = \
             \"required\"\nqueue_depth = 8"
        );
        let large = Stream::new(&large, 32 * MIB);
        let mut set_up = SetUp::new("iops = 1", (0..streams).map(small).chain([large]));
        if role == Role::Trick {
            set_up.open("bytes-balance", "the page cache answers most of the operations");
        } else {
            set_up.expected.kept.push("achieved_iops");
        }
        set_up
    }

    fn names(self, role: Role) -> SetUp {
        let Self::Names { metadata, operation, size_kib, reads, depth, limit } = self else {
            unreachable!("another kind")
        };
        let others = ["getattr", "lookup", "access", "readdir"];
        let mut mix = String::new();
        for other in others {
            mix.push_str(&format!("{other} = {}, ", if other == operation { 100 } else { 0 }));
        }
        let mut lines = format!(
            "sizes = \"{size_kib}KiB\"\nreads = {reads}\nqueue_depth = {depth}\ndirect = \"required\"\n"
        );
        if role != Role::TwinWithout {
            lines.push_str(&format!(
                "metadata = {metadata}\nmetadata_mix = {{ {mix}create = 0, remove = 0, rename = 0, \
                 setattr = 0 }}"
            ));
        }
        let requirement = match role {
            // No disk with a file system responds this fast, and no kernel sustains this rate.
            Role::Trick => format!("iops = 200000\n{limit} = \"15us\""),
            Role::TwinWithout => format!("iops = 1\n{limit} = {GENEROUS:?}"),
            Role::TwinMet => format!("iops = 1\nmetadata_ops = 1\n{limit} = {GENEROUS:?}"),
        };
        let mut set_up = SetUp::new(&requirement, [Stream::new(&lines, 32 * MIB)]);
        if role == Role::Trick {
            set_up.breaks(limit, 0, "the disk takes longer, and fewer operations reach it");
            set_up.expected.broken.push(("achieved_iops", 0));
        } else {
            set_up.expected.kept.extend(["achieved_iops", limit]);
        }
        if role == Role::TwinMet {
            set_up.expected.kept.push("achieved_metadata_ops");
        }
        set_up
    }
}

impl Corner {
    fn set_up(self, role: Role) -> SetUp {
        if role != Role::Trick {
            let reads = if let Self::WorkingSet { reads, .. } = self { reads } else { 100 };
            let lines = format!("sizes = \"64KiB\"\nreads = {reads}\nqueue_depth = 8");
            let capacity = "iops = 1\ncapacity = \"12MiB\"";
            let mut set_up = SetUp::new(capacity, [Stream::new(&lines, 12 * MIB)]);
            set_up.verify = true;
            set_up.expected.kept.extend(["capacity", "achieved_iops"]);
            return set_up;
        }
        let lines = match self {
            Self::WorkingSet { kib, reads } => {
                format!("reads = {reads}\nworking_set = \"{kib}KiB\"")
            }
            Self::Offset { kib } => {
                format!("reads = 100\noffset = \"64MiB\"\nworking_set = \"{kib}KiB\"")
            }
            Self::Aligned => "reads = 100\nalign = \"1MiB\"".to_owned(),
            Self::Hot => "reads = 100\npatterns = \"hot-cold\"\nhot_space = 0.001\nhot_access = \
                          0.9999"
                .to_owned(),
            Self::IdleStream => "reads = 100\nname = \"idle\"\nrate = 2".to_owned(),
        };
        let mut streams = vec![Stream { lines, size_bytes: ROOM_MIB * MIB }];
        if self == Self::IdleStream {
            let busy = "reads = 100\nname = \"busy\"\nworking_set = \"64KiB\"".to_owned();
            streams.push(Stream { lines: busy, size_bytes: MIB });
        }
        let mut set_up = SetUp::new("iops = 1\ncapacity = \"90MiB\"", streams);
        set_up.verify = true;
        set_up.breaks("capacity", 0, "the load uses a corner of the capacity");
        set_up
    }
}

impl Stream {
    fn new(lines: &str, size_bytes: u64) -> Self {
        Self { lines: lines.to_owned(), size_bytes }
    }
}

impl SetUp {
    fn new(requirement: &str, streams: impl IntoIterator<Item = Stream>) -> Self {
        Self {
            requirement: requirement.to_owned(),
            streams: streams.into_iter().collect(),
            verify: false,
            speed: DeviceSpeed::Full,
            library: None,
            expected: ExpectedVerdict::default(),
        }
    }

    fn breaks(&mut self, row: &'static str, least_ns: u64, why: &str) {
        self.expected.no_pass = Some(why.to_owned());
        self.expected.broken.push((row, least_ns));
    }

    fn open(&mut self, rule: &'static str, why: &str) {
        self.expected.no_pass = Some(why.to_owned());
        self.expected.open = Some(rule);
    }

    /// Writes the plan. `target` is the content of its target section.
    pub fn plan(&self, target: &str, measure_ms: u64) -> String {
        let on_device = target.starts_with("device");
        let mut streams = String::new();
        let mut offset = 0;
        for stream in &self.streams {
            let size = stream.size_bytes;
            streams.push_str(&format!("[[workload.matrix]]\n{}\n", stream.lines));
            if !on_device {
                streams.push_str(&format!("file_size = \"{size}B\"\n"));
            } else if self.streams.len() > 1 && !stream.lines.contains("working_set") {
                // Streams on a device have separate regions, as files would be.
                streams.push_str(&format!("offset = \"{offset}B\"\nworking_set = \"{size}B\"\n"));
                offset += size;
            }
        }
        format!(
            "version = 1\nname = \
             \"trick\"\n[requirement]\n{}\n[target]\n{target}\n{streams}[phases]\nwarm_up = \
             \"300ms\"\nmeasure = \"{measure_ms}ms\"\nverify = {}\n[evidence]\nmin_measure = \
             \"1s\"\ninterval = \"100ms\"\n",
            self.requirement, self.verify
        )
    }

    /// Returns the environment variables that load a library into the process.
    pub fn environment(&self, sandbox: &Sandbox) -> Vec<(&'static str, String)> {
        self.library.map(|library| library.environment(sandbox)).into_iter().collect()
    }
}

/// A library whose `pread64` returns the result of its own system call.
const ANSWERS: &str = "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <unistd.h>\nssize_t \
                       pread64(int file, void *data, size_t size, off_t offset) {\nreturn \
                       syscall(SYS_pread64, file, data, size, offset);\n}\n";

impl Library {
    fn environment(self, sandbox: &Sandbox) -> (&'static str, String) {
        let directory = sandbox.path("lib");
        std::fs::create_dir_all(&directory).unwrap();
        let shown = |path: &Path| path.display().to_string();
        match self {
            Self::Path(index) => {
                copy_library(index, &directory);
                ("LD_LIBRARY_PATH", shown(&directory))
            }
            Self::Link(index) => {
                let kept = sandbox.path("kept");
                std::fs::create_dir_all(&kept).unwrap();
                let copy = copy_library(index, &kept);
                let link = directory.join(copy.file_name().unwrap());
                std::os::unix::fs::symlink(&copy, link).unwrap();
                ("LD_LIBRARY_PATH", shown(&directory))
            }
            Self::Preload(index) => ("LD_PRELOAD", shown(&copy_library(index, &directory))),
            Self::Audit(index) => ("LD_AUDIT", shown(&copy_library(index, &directory))),
            Self::Answers => {
                let (source, library) = (sandbox.path("pread.c"), directory.join("pread.so"));
                std::fs::write(&source, ANSWERS).unwrap();
                let paths = [source.to_str().unwrap(), library.to_str().unwrap()];
                tool("cc", &["-shared", "-fPIC", "-o", paths[1], paths[0]]);
                ("LD_PRELOAD", shown(&library))
            }
        }
    }
}

/// Copies one of the distribution's libraries that the program uses. The owner of the copy can
/// change its contents.
fn copy_library(index: usize, directory: &Path) -> std::path::PathBuf {
    let mapped = tool("ldd", &[env!("CARGO_BIN_EXE_plimsoll")]);
    let libraries = mapped.lines().filter(|line| line.contains("=>"));
    let libraries = libraries.filter_map(|line| line.split_whitespace().nth(2));
    let libraries: Vec<&str> = libraries.filter(|path| path.starts_with('/')).collect();
    let library = Path::new(libraries[index % libraries.len()]);
    let copy = directory.join(library.file_name().unwrap());
    std::fs::copy(library, &copy).unwrap();
    copy
}

/// Returns the row of a limit in a verdict.
pub fn row<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let mut rows = verdict["checks"].as_array().into_iter().flatten();
    rows.find(|row| row["name"] == name).unwrap_or(&Value::Null)
}

impl ExpectedVerdict {
    /// Returns the differences between a verdict and the expected verdict.
    pub fn differences(&self, verdict: &Value) -> Vec<Difference> {
        let mut all = Vec::new();
        let mut add = |accepts, says| all.push(Difference { accepts, says });
        let word = &verdict["verdict"];
        if let Some(why) = self.no_pass.as_ref().filter(|_| word == "PASS") {
            add(true, format!("PASS, though {why}"));
        }
        for (name, least_ns) in &self.broken {
            let row = row(verdict, name);
            if row.is_null() {
                add(true, format!("{name} has no row"));
            }
            let shown = row["measured_ns"].as_u64();
            if row["ok"] == true || shown.is_some_and(|ns| ns < *least_ns) {
                add(true, format!("{name} is not met: {row}"));
            }
        }
        for name in &self.kept {
            let row = row(verdict, name);
            if row["ok"] == false || row.is_null() {
                add(false, format!("{name} is met: {row}"));
            }
        }
        if let Some(rule) = self.open.filter(|rule| found(verdict, rule) == "pass") {
            add(true, format!("{rule} passed"));
        }
        if let Some(rule) = self.passed.filter(|rule| found(verdict, rule) != "pass") {
            add(false, format!("{rule} is {}", found(verdict, rule)));
        }
        all
    }
}
