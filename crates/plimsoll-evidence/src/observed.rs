//! `observed.json`: what the system beneath did during the measured phase, in total. `None` is
//! unknown, never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::Unknown;
use crate::inside::Inside;

/// Totals of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Each block device behind the target.
    pub devices: Vec<DeviceTotals>,
    /// Page cache residency of the target's files.
    pub page_cache: PageCache,
    /// CPU of the host.
    pub cpu: Cpu,
    /// CPU, memory and storage I/O of the load generator itself.
    pub generator: Generator,
    /// Extents of the target's files when the measurement began.
    pub extents: Option<Extents>,
    /// Extents of the backing files of the loop devices beneath; `None` without such.
    #[serde(default)]
    pub backing: Option<Extents>,
    /// What the file systems beneath are set to do with data.
    #[serde(default)]
    pub file_systems: Vec<FileSystem>,
    /// What the workload really did.
    pub workload: AccessProfile,
    /// The files that loop devices beneath rest on.
    #[serde(default)]
    pub backing_files: Vec<BackingFile>,
    /// Processes of this host that answer for the target: servers of a network protocol, of FUSE.
    #[serde(default)]
    pub servers: Vec<Server>,
    /// The command that was watched (`plimsoll observe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// What the tool itself said of the devices beneath, where a result was taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said_devices: Vec<DeviceTotals>,
    /// I/O errors of each device beneath that the kernel logged meanwhile; `None` where its log cannot be
    /// read. It leaves some out where there are many at once.
    #[serde(default)]
    pub device_errors: Option<BTreeMap<String, u64>>,
    /// Storage I/O of the kernel's own threads; `None` where it could not be read.
    #[serde(default)]
    pub kernel: Option<Moved>,
    /// Disks of this host that are not beneath the target.
    #[serde(default)]
    pub elsewhere: Option<Elsewhere>,
    /// The host's memory.
    #[serde(default)]
    pub memory: Memory,
    /// Time that tasks of the host waited for a resource.
    #[serde(default)]
    pub pressure: Pressure,
    /// Storage I/O of other processes of the host.
    #[serde(default)]
    pub neighbours: Neighbours,
    /// Software RAID beneath.
    #[serde(default)]
    pub raids: Vec<Raid>,
    /// The clocks.
    #[serde(default)]
    pub clock: ClockWatch,
    /// The counters of the network mounts beneath.
    #[serde(default)]
    pub network_mounts: Vec<NetworkMount>,
    /// What the storage system's own statistics say (`[observe.metrics]`).
    #[serde(default)]
    pub sources: Sources,
    /// When each issuer (host, job) began and ended, where there were several.
    #[serde(default)]
    pub issuers: Vec<Issuer>,
    /// What a modelled system knows of itself; absent where the system is a real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// What stands between the tool and what the kernel says: libraries that were loaded before all others, a
    /// tracer, and mounts over what it tells in `/proc` and `/sys`; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<Vec<String>>,
    /// What could not be observed.
    pub unknown: Vec<Unknown>,
}

/// Bytes that moved between a process or device and what is below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub written_bytes: u64,
}

impl Moved {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
        }
    }

    /// What is left of it; nothing where less was there.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(other.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(other.written_bytes),
        }
    }
}

/// Counters of one block device over the measured phase (`/sys/block/NAME/stat`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTotals {
    /// Kernel name.
    pub name: String,
    /// True where it is the device that the target's file system lies on; false further down.
    pub top: bool,
    /// Reads completed.
    pub reads: u64,
    /// Reads merged before they were issued.
    pub reads_merged: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of reads, summed.
    pub read_ns: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged.
    pub writes_merged: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time of writes, summed.
    pub write_ns: u64,
    /// Flush requests; `None` on kernels before 5.5.
    pub flushes: Option<u64>,
    /// Bytes discarded.
    pub discarded_bytes: Option<u64>,
    /// Time that the device had I/O in flight.
    pub busy_ns: u64,
    /// In-flight I/Os × time.
    pub queue_ns: u64,
    /// Of what it moved, what came from above it through devices that are not beneath the target: other
    /// partitions, other volumes, other loop devices. `None`: not looked at.
    #[serde(default)]
    pub beside: Option<Moved>,
}

/// How much of the target's files the host held in its page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCache {
    /// Bytes of the files that were asked about.
    pub files_bytes: Option<u64>,
    /// Resident before the measured phase.
    pub resident_bytes_before: Option<u64>,
    /// Resident after it.
    pub resident_bytes_after: Option<u64>,
    /// Whether the system's caches were dropped before the measurement, where asked.
    pub system_dropped: Option<bool>,
}

/// CPU of the host, as shares of all its CPUs (0 to 1), from one-second samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Mean busy share.
    pub busy_avg: Option<f64>,
    /// Least of the samples.
    pub busy_min: Option<f64>,
    /// Largest of the samples.
    pub busy_max: Option<f64>,
    /// Mean share stolen by the hypervisor.
    pub steal_avg: Option<f64>,
    /// Largest share stolen.
    pub steal_max: Option<f64>,
    /// Busiest single CPU, mean.
    pub busiest_cpu_avg: Option<f64>,
    /// Lowest of the samples of the CPUs' mean frequency; `None` where the kernel shows none.
    #[serde(default)]
    pub frequency_hz_min: Option<u64>,
    /// Highest of them.
    #[serde(default)]
    pub frequency_hz_max: Option<u64>,
    /// Time that this control group's tasks were kept from running by its CPU quota.
    #[serde(default)]
    pub throttled_ns: Option<u64>,
}

/// The load generator's own footprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of the process with all its threads.
    pub user_ns: Option<u64>,
    /// System CPU time, the kernel's I/O workers included.
    pub system_ns: Option<u64>,
    /// Bytes that the process caused to be read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process caused to be written to storage: written past the page cache, or made
    /// dirty in it.
    pub storage_written_bytes: Option<u64>,
    /// Bytes of those that were dirty and taken back before they were written.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Most memory resident.
    pub resident_bytes_max: Option<u64>,
    /// Largest time that the generator itself was late.
    pub lag_ns_max: Option<u64>,
    /// How long operations that could start stood in the generator before they were handed over, in
    /// the measured phase: taking completions one after the other, making content, waiting for a
    /// CPU. It is no part of a closed loop's latency. `None` where it wasn't recorded. Its histogram
    /// is `generator.lag` of `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// The same of operations that waited because as many were in flight as may be: the target's
    /// lateness, in open loops and under rate caps.
    #[serde(default)]
    pub held: Option<Lag>,
    /// Starts that a schedule asked for and that were never given: the measurement ended before.
    #[serde(default)]
    pub starts_never_given: Option<u64>,
    /// The threads that issued, in order.
    #[serde(default)]
    pub threads: Vec<GeneratorThread>,
    /// Largest share of its CPU that one of its threads used.
    #[serde(default)]
    pub busiest_thread_share: Option<f64>,
    /// Page faults that had to read.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Times that it gave its CPU up.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Times that its CPU was taken from it.
    #[serde(default)]
    pub switches_forced: Option<u64>,
}

/// How long operations waited before they were handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Operations handed over.
    pub operations: u64,
    /// Sum of their waits.
    pub wait_ns_sum: u64,
    /// Median.
    pub wait_ns_p50: u64,
    /// 99th percentile.
    pub wait_ns_p99: u64,
    /// Longest.
    pub wait_ns_max: u64,
}

/// A thread of the load generator that issued operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// Its name.
    pub name: String,
    /// The CPU that it was pinned to; `None`: the scheduler placed it.
    pub cpu: Option<u32>,
    /// Why.
    pub why: String,
    /// CPUs that it was seen on at the ends of intervals, ascending.
    pub ran_on: Vec<u32>,
    /// User CPU time in the measured phase.
    pub user_ns: u64,
    /// System CPU time in the measured phase, without that of the kernel's I/O workers.
    pub system_ns: u64,
    /// Time in the measured phase in which it watched the clock for a start that was near, and would
    /// have taken work: busy by the CPU's account, and not at its limit. `None` where it wasn't
    /// recorded.
    pub spun_ns: Option<u64>,
}

/// Extents of the target's files (`FIEMAP`, or `SEEK_HOLE` where that is missing).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Apparent size.
    pub size_bytes: u64,
    /// Holes.
    pub hole_bytes: u64,
    /// Allocated, never written; `None` where only holes are told.
    pub unwritten_bytes: Option<u64>,
    /// Extents in all.
    pub extents: Option<u64>,
    /// Shared with other files or snapshots.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// Stored compressed or encrypted.
    #[serde(default)]
    pub encoded_bytes: Option<u64>,
    /// Allocated (`st_blocks`). It is blind to what was never written.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// Hole and unwritten bytes within the working set; `None` where that is not told apart.
    #[serde(default)]
    pub empty_in_working_set_bytes: Option<u64>,
}

/// What a file system beneath is set to do with data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// The path that lies on it.
    pub path: String,
    /// Such as `btrfs`.
    pub kind: Option<String>,
    /// Compression that applies to the target's files, such as `zstd:3`; empty: none; `None`: not
    /// known.
    pub compression: Option<String>,
    /// Whether data carries checksums of the file system.
    pub checksums: Option<bool>,
    /// What direct I/O on a file of the target has to be aligned to (`statx`, Linux 6.1); 0: the file
    /// system takes the flag and buffers all the same; `None`: it does not say.
    #[serde(default)]
    pub direct_align_bytes: Option<u32>,
    /// Whether the file system lies in memory (tmpfs, ramfs, a RAM disk).
    pub memory: Option<bool>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Free when the measurement began.
    pub free_bytes: Option<u64>,
}

/// A command under our eyes: its processes with all that they started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Processes that were seen.
    pub processes_seen: u64,
    /// Those that had data open, then those that moved most; at most 64.
    pub processes: Vec<CommandProcess>,
    /// Processes whose counters and files belong to another user.
    pub unreadable: u64,
    /// Processes that went on when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries that processes of it were started with before all others (`LD_PRELOAD`), with whose they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// What all of them moved to and from storage, those too that nobody saw.
    pub moved: Option<Moved>,
    /// The same of the time alone that the result says it measured, last of all, less what was taken back.
    #[serde(default)]
    pub moved_measured: Option<Moved>,
    /// Of what they wrote, what was taken back before it was written.
    pub cancelled_bytes: Option<u64>,
    /// Files of a MiB and more, and block devices, that were seen open.
    pub files_seen: u64,
    /// The largest of them; at most 64.
    pub files: Vec<OpenedFile>,
    /// Other hosts that they were connected to.
    pub remote: Vec<String>,
    /// The result that the figures are of; `None` where none was named.
    pub result: Option<ResultFile>,
}

/// A process of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Its name and number.
    pub name: String,
    /// What it was last seen to have moved, with processes that it waited for.
    pub moved: Option<Moved>,
    /// The files that it had open, as numbers in [`Command::files`].
    pub files: Vec<u64>,
}

/// A file or block device that the command had open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Its name when it was opened.
    pub path: String,
    /// Whether it is a block device.
    pub device: bool,
    /// Whether it was there when the command had ended.
    pub there: bool,
    /// Opened for reading.
    pub read: bool,
    /// Opened for writing.
    pub written: bool,
    /// Whether each time past the page cache (`O_DIRECT`).
    pub direct: Option<bool>,
    /// Its largest size.
    pub size_bytes: Option<u64>,
    /// What was last allocated of it.
    pub allocated_bytes: Option<u64>,
    /// Names of the devices that it lies on directly.
    pub on: Vec<String>,
    /// Its file system.
    pub file_system: Option<String>,
    /// Where that is mounted.
    pub mount_point: Option<String>,
}

/// The result of a command, as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Its name.
    pub path: String,
    /// The files, directories and devices that it says it is about, as they are found here.
    pub about: Vec<String>,
    /// Whether it was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// How far the time that it says it was made is outside of the command's: 0 within.
    pub off_ns: Option<u64>,
    /// How long it says that it measured.
    pub measured_ns: Option<u64>,
    /// How long the command ran.
    pub ran_ns: u64,
}

impl ResultFile {
    /// Whether the result is about an opened file: it names the file, or a directory above it, or a job
    /// whose files are called after it (`JOB.0.0`). A name that is not a whole path is the end of one.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.is_called(name))
    }
}

impl OpenedFile {
    /// Whether a result means this file by `name`, as [`ResultFile::is_about`].
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.trim_end_matches('/');
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', '.']);
        if name.starts_with('/') {
            return self.path.strip_prefix(name).is_some_and(ends);
        }
        let within = format!("/{}", name.trim_start_matches("./"));
        self.path.match_indices(&within).any(|(at, _)| ends(&self.path[at + within.len()..]))
    }
}

/// The file that a loop device rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// The file.
    pub path: String,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// How much of it the page cache held when the measurement began.
    pub resident_bytes_before: Option<u64>,
    /// And when it ended.
    pub resident_bytes_after: Option<u64>,
    /// Dirty or under write-back when it began; `None` before Linux 6.5.
    pub dirty_bytes_before: Option<u64>,
    /// And when it ended.
    pub dirty_bytes_after: Option<u64>,
    /// What direct I/O on it has to be aligned to, as [`FileSystem::direct_align_bytes`].
    pub direct_align_bytes: Option<u32>,
}

/// What answers for a target, where it is not this host's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// What it serves: an address, or the FUSE mount.
    pub serves: String,
    /// Whether it is on this very host; `None`: not told.
    pub local: Option<bool>,
    /// The processes of this host that answer, with their numbers.
    pub processes: Vec<String>,
    /// What those moved to and from storage; `None` where that could not be read.
    pub moved: Option<Moved>,
    /// Whether they have connections to other hosts, and may pass on what they are asked.
    pub relays: bool,
    /// What processes moved that they are connected to through sockets of this host's own, and may pass on to;
    /// absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Moved>,
    /// Connections that others have to them: what they moved need not be for this process alone.
    #[serde(default)]
    pub others: u64,
}

/// What disks of this host moved that are not beneath the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Devices that rest on no other.
    pub disks: Moved,
    /// Devices that are memory.
    pub memory: Moved,
}

/// The host's memory at the start and the end of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Page cache when it began.
    pub cached_bytes_before: Option<u64>,
    /// Page cache when it ended.
    pub cached_bytes_after: Option<u64>,
    /// Dirty and under write-back when it began.
    pub dirty_bytes_before: Option<u64>,
    /// Dirty and under write-back when it ended.
    pub dirty_bytes_after: Option<u64>,
    /// Largest of the samples of that.
    pub dirty_bytes_max: Option<u64>,
}

/// Shares of the measured phase in which tasks of the host waited (`/proc/pressure`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some task waited for I/O.
    pub io_some_share: Option<f64>,
    /// All tasks that could have run waited for I/O.
    pub io_full_share: Option<f64>,
    /// Some task waited for a CPU.
    pub cpu_some_share: Option<f64>,
    /// Some task waited for memory.
    pub memory_some_share: Option<f64>,
}

/// Storage I/O of processes other than the load generator (`/proc/PID/io`), on any device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Bytes that they had read from storage; `None` where no process could be asked.
    pub storage_read_bytes: Option<u64>,
    /// Bytes that they had written to storage.
    pub storage_written_bytes: Option<u64>,
    /// The process that moved most, with its id.
    pub largest: Option<String>,
    /// Processes whose counters could not be read.
    pub unreadable: u64,
    /// Whether there are processes that do not even show: those outside of a container.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_unseen: bool,
}

impl Neighbours {
    /// Whether each process of the host could be asked.
    pub fn is_whole(&self) -> bool {
        self.storage_read_bytes.is_some() && self.unreadable == 0 && !self.outside_unseen
    }
}

/// A software RAID beneath (`/sys/block/md*/md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// Kernel name.
    pub name: String,
    /// Such as `raid5`.
    pub level: Option<String>,
    /// Members missing.
    pub degraded: Option<u64>,
    /// What it does beside: `idle`, `resync`, `recover`, `check`, `repair`, `reshape`.
    pub sync_action: Option<String>,
}

/// The clocks against each other, and whether the process ran all the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWatch {
    /// Largest jump of the wall clock between two samples, less what slewing can do.
    pub step_ns_max: Option<u64>,
    /// Change of the kernel's clock source during the phase, if there was one.
    pub source_changed: Option<String>,
    /// How long it was watched, by the clock that the run goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// The same by the kernel's own account (`/proc/uptime`), which counts time in suspension as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// Time in which the process was stopped, frozen or suspended with its machine, in pauses of a second or
    /// more; absent where nothing watched for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Pauses of a second or more in which a thread that only sleeps did not come to run, the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// A time in which a thread that had nothing to wait for did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it began, since the run's start.
    pub at_ns: u64,
    /// How long it was, by the clock that tells most of it.
    pub duration_ns: u64,
    /// What it was.
    pub kind: PauseKind,
    /// Part of it that the thread waited for a CPU, or the hypervisor or a quota withheld one; absent where
    /// the kernel does not tell.
    pub withheld_ns: Option<u64>,
}

/// Why a thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// A signal stopped the process, and SIGCONT let it go on.
    Signalled,
    /// It neither ran nor waited for a CPU: a freezer, a debugger, or the machine itself stood still.
    Frozen,
    /// The machine was suspended.
    Suspended,
    /// The CPU was busy with others, stolen or withheld by a quota: the process was not stopped.
    Busy,
    /// It can't be told which.
    Unknown,
}

impl PauseKind {
    /// Whether the process was stopped, and did not merely wait for its turn.
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Signalled | Self::Frozen | Self::Suspended)
    }
}

/// A network mount's own counters over the measured phase (`/proc/self/mountstats`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkMount {
    /// Where it is mounted.
    pub mount_point: String,
    /// The server's export.
    pub source: String,
    /// Bytes that programs read through the page cache.
    pub cached_read_bytes: u64,
    /// Bytes that programs read past it.
    pub direct_read_bytes: u64,
    /// Bytes that programs wrote, either way.
    pub written_bytes: u64,
    /// Bytes that came from the server.
    pub server_read_bytes: u64,
    /// Bytes that went to the server.
    pub server_written_bytes: u64,
    /// Calls sent again.
    pub retransmissions: u64,
}

/// What a storage system says of itself, over the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Where reads came from: `cache`, `ssd`, `hdd`, `zero`, `remote`, `other`; in the unit of its
    /// counters.
    pub reads_from: BTreeMap<String, f64>,
    /// Where writes went: `cache`, `oplog`, `ssd`, `hdd`, `remote`, `other`.
    pub writes_to: BTreeMap<String, f64>,
    /// How many to one it reduces data.
    pub data_reduction: Option<f64>,
}

/// A host or job that issued a share of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// Its name.
    pub name: String,
    /// When it began, on a clock that all share.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What the operations themselves were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessProfile {
    /// Distinct bytes read.
    pub working_set_read_bytes: Option<u64>,
    /// Distinct bytes written.
    pub working_set_written_bytes: Option<u64>,
    /// Share of reads that continued where the stream's last read ended.
    pub read_sequential_share: Option<f64>,
    /// Share of writes that continued where the stream's last write ended.
    pub write_sequential_share: Option<f64>,
    /// Share of log writes that continued where the last ended.
    pub log_sequential_share: Option<f64>,
    /// Compressed over original size of sampled content, LZ4 in 64 KiB pieces.
    pub compressed_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that were all zero.
    pub zero_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that had been seen before.
    pub duplicate_share: Option<f64>,
    /// 4 KiB blocks that the content's figures rest on.
    #[serde(default)]
    pub blocks_sampled: u64,
    /// Bits of information per byte of the sampled content, from the frequencies of its bytes.
    #[serde(default)]
    pub entropy_bits_per_byte: Option<f64>,
    /// Data operations seen.
    #[serde(default)]
    pub reads: Option<u64>,
    /// Of them writes.
    #[serde(default)]
    pub writes: Option<u64>,
    /// Bytes of a read, mean.
    #[serde(default)]
    pub read_size_bytes_avg: Option<f64>,
    /// Bytes of a write, mean.
    #[serde(default)]
    pub write_size_bytes_avg: Option<f64>,
    /// Smallest transfer.
    #[serde(default)]
    pub size_bytes_min: Option<u64>,
    /// Largest transfer.
    #[serde(default)]
    pub size_bytes_max: Option<u64>,
    /// Share of transfers that did not begin and end on a 4 KiB boundary.
    #[serde(default)]
    pub misaligned_share: Option<f64>,
    /// Share of reads that a cache of this size with least-recently-used replacement would miss,
    /// from spatially sampled reuse distances; ascending sizes.
    #[serde(default)]
    pub miss_ratio: Vec<MissRatio>,
}

/// A point of the miss-ratio curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissRatio {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of accesses that miss it, those to blocks never seen before included.
    pub miss_share: f64,
}
