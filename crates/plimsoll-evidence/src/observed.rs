//! `observed.json`: what the system beneath did during the measured phase, in total. `None` is
//! unknown, never zero.

mod access_profile;
mod command;
mod files;
mod generator;
mod host;
mod limits;
mod links;
mod mapped;
mod replay;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::Unknown;
use crate::inside::Inside;

pub use access_profile::{AccessProfile, MissRatio};
pub use command::{Command, CommandProcess, OpenedFile, ResultFile};
pub use files::{BackingFile, Extents, FileSystem, PageCache};
pub use generator::{Generator, GeneratorThread, Lag};
pub use host::{
    ClockWatch, Cpu, Elsewhere, Memory, Neighbours, Pause, PauseKind, Pressure, Server,
};
pub use limits::Limits;
pub use links::{Interface, LinkCounters, Links, Tcp};
pub use mapped::MappedFile;
pub use replay::{Replay, TraceBegun, TraceDue, TraceFile, TraceMapping};

/// Totals of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// When the counters of devices, process and host were read first, from the run's start on; absent in evidence of
    /// earlier versions and of other tools. A process that was stopped reads them late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from_ns: Option<u64>,
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
    /// Network interfaces and TCP; absent where nobody looked, or where they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
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
    /// Executable files that the process of the load had mapped when the measurement ended. Absent in
    /// bundles of earlier versions, and where they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<Vec<MappedFile>>,
    /// Limits and priorities of the load's process when the measurement ended. Absent in bundles of
    /// earlier versions and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The trace that was replayed, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
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
