//! `observed.json`: observations of the host, the devices and the storage in the measured phase, as
//! totals. `None` means unknown, never zero.

mod access_profile;
mod command;
mod files;
mod generator;
mod host;
mod limits;
mod links;
mod mapped_file;
mod replay;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::ObservationGap;
use crate::model_statistics::ModelStatistics;

pub use access_profile::{AccessProfile, MissRatio};
pub use command::{Command, CommandProcess, OpenedFile, ResultFile};
pub use files::{BackingFile, Extents, FileSystem, PageCache};
pub use generator::{Generator, GeneratorThread, Lag};
pub use host::{
    ClockWatch, Cpu, Memory, Neighbours, OtherDisks, Pause, PauseKind, Pressure, Server,
};
pub use limits::Limits;
pub use links::{Interface, LinkCounters, Links, Tcp};
pub use mapped_file::MappedFile;
pub use replay::{Replay, TraceBegun, TraceDue, TraceFile, TraceMapping};

/// Observations of the measured phase, as totals over this phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Time from the start of the run until all counters had been read once. These are the counters
    /// of devices, network mounts, the host, this process and the kernel's threads. If the process
    /// is stopped while it reads them, the counters are read late. Absent in evidence that earlier
    /// versions or other tools wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from_ns: Option<u64>,
    /// Block devices that the target uses.
    pub devices: Vec<DeviceTotals>,
    /// Parts of the target's files that were in the page cache.
    pub page_cache: PageCache,
    /// CPU usage of the host in the measured phase.
    pub cpu: Cpu,
    /// CPU, memory and storage I/O of the load generator.
    pub generator: Generator,
    /// Extents of the target's files, as they were at the start of the measurement.
    pub extents: Option<Extents>,
    /// Extents of the backing files of underlying loop devices; `None` if the target has no
    /// loop device.
    #[serde(default)]
    pub backing: Option<Extents>,
    /// Settings of the underlying file systems.
    #[serde(default)]
    pub file_systems: Vec<FileSystem>,
    /// Profile of the I/O that the load generator issued.
    pub workload: AccessProfile,
    /// Backing files of underlying loop devices.
    #[serde(default)]
    pub backing_files: Vec<BackingFile>,
    /// Processes on this host that serve the target, such as servers of a network protocol or of
    /// FUSE.
    #[serde(default)]
    pub servers: Vec<Server>,
    /// The observed command; `None` if the run is not a run of `plimsoll observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// Totals of device counters that an imported result contains.
    #[serde(rename = "said_devices", default, skip_serializing_if = "Vec::is_empty")]
    pub reported_devices: Vec<DeviceTotals>,
    /// I/O errors that the kernel logged for each underlying device; `None` if the kernel's log
    /// cannot be read. If many messages occur in a short time, the kernel omits some of them.
    #[serde(default)]
    pub device_errors: Option<BTreeMap<String, u64>>,
    /// Storage I/O of kernel threads; `None` if it could not be read.
    #[serde(default)]
    pub kernel: Option<IoBytes>,
    /// Storage I/O of disks of this host that the target does not use.
    #[serde(rename = "elsewhere", default)]
    pub other_disks: Option<OtherDisks>,
    /// Memory of the host.
    #[serde(default)]
    pub memory: Memory,
    /// Pressure stall information (PSI) of the host.
    #[serde(default)]
    pub pressure: Pressure,
    /// Storage I/O of the other processes on the host.
    #[serde(default)]
    pub neighbours: Neighbours,
    /// Software RAIDs that the target uses.
    #[serde(default)]
    pub raids: Vec<Raid>,
    /// Clock checks.
    #[serde(default)]
    pub clock: ClockWatch,
    /// Counters of the underlying network mounts.
    #[serde(default)]
    pub network_mounts: Vec<NetworkMount>,
    /// Counters of network interfaces and TCP; absent if they were not observed or could not be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// Statistics of the storage system itself (`[observe.metrics]`).
    #[serde(default)]
    pub sources: Sources,
    /// Start and end of the load on each host or of each job, if several hosts or jobs issued the
    /// load.
    #[serde(default)]
    pub issuers: Vec<Issuer>,
    /// Statistics of a modelled system; absent for real systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<ModelStatistics>,
    /// Possible causes of false kernel reports: preloaded libraries, a tracer, and mounts that hide
    /// files in `/proc` and `/sys`. Absent if this was not checked.
    #[serde(rename = "between", default, skip_serializing_if = "Option::is_none")]
    pub interposition: Option<Vec<String>>,
    /// Executable files that the load generator had mapped at the end of the measurement. Absent if
    /// they could not be read, and in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<Vec<MappedFile>>,
    /// Limits and priorities of the load generator's process at the end of the measurement. Absent
    /// in bundles of earlier versions and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The replayed trace; `None` if the workload is not a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
    /// Facts that could not be observed.
    pub unknown: Vec<ObservationGap>,
}

/// Number of bytes that a process or device read, and number of bytes that it wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoBytes {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl IoBytes {
    /// Adds two counts. Reads and writes are added separately.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
        }
    }

    /// Returns the increase since an earlier reading; 0 if the counter has decreased since then.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(other.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(other.written_bytes),
        }
    }
}

/// Counters of one block device (`/sys/block/NAME/stat`): their increase during the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTotals {
    /// Kernel name.
    pub name: String,
    /// True if the target's file system uses this device directly; false if the file system uses it
    /// only through another device.
    pub top: bool,
    /// Reads completed.
    pub reads: u64,
    /// Number of reads that were merged with other reads before they were issued.
    pub reads_merged: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Sum of the durations of all reads.
    pub read_ns: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged.
    pub writes_merged: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Sum of the durations of all writes.
    pub write_ns: u64,
    /// Number of flush requests; `None` on kernels before 5.5.
    pub flushes: Option<u64>,
    /// Bytes discarded.
    pub discarded_bytes: Option<u64>,
    /// Total time during which at least one I/O was in flight.
    pub busy_ns: u64,
    /// Number of I/Os in flight, integrated over time.
    pub queue_ns: u64,
    /// Part of this device's I/O that comes from devices which use it but do not belong to the
    /// target. Examples are other partitions, volumes and loop devices. `None` if this part was not
    /// observed.
    #[serde(default)]
    pub beside: Option<IoBytes>,
}

/// A software RAID (`/sys/block/md*/md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// Kernel name.
    pub name: String,
    /// RAID level, such as `raid5`.
    pub level: Option<String>,
    /// Number of members that are missing from the RAID.
    pub degraded: Option<u64>,
    /// Background activity: `idle`, `resync`, `recover`, `check`, `repair`, `reshape`.
    pub sync_action: Option<String>,
}

/// Counters of a network mount (`/proc/self/mountstats`): their increase during the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkMount {
    /// Mount point.
    pub mount_point: String,
    /// Server and export, in the form of the mount table.
    pub source: String,
    /// Bytes that programs read through the page cache.
    pub cached_read_bytes: u64,
    /// Bytes that programs read with direct I/O.
    pub direct_read_bytes: u64,
    /// Bytes that programs wrote, buffered or direct.
    pub written_bytes: u64,
    /// Bytes that the client (this host) read from the server.
    pub server_read_bytes: u64,
    /// Bytes that the client (this host) wrote to the server.
    pub server_written_bytes: u64,
    /// Retransmitted calls.
    pub retransmissions: u64,
}

/// Statistics of a storage system over the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Amount that was read from each source: `cache`, `ssd`, `hdd`, `zero`, `remote`, `other`. The
    /// unit is that of the system's counters.
    pub reads_from: BTreeMap<String, f64>,
    /// Amount that was written to each destination: `cache`, `oplog`, `ssd`, `hdd`, `remote`,
    /// `other`.
    pub writes_to: BTreeMap<String, f64>,
    /// Data reduction ratio. The value N means N:1.
    pub data_reduction: Option<f64>,
}

/// A host or job that issued a part of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// Name of the host or job.
    pub name: String,
    /// Start of this part of the load, on a clock that is common to all issuers.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}
