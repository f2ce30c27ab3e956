//! `observed.json`: what the system beneath did during the measured phase, in total. `None` is
//! unknown, never zero.

use serde::{Deserialize, Serialize};

use crate::environment::Unknown;

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
    /// What the workload really did.
    pub workload: WorkloadShape,
    /// What could not be observed.
    pub unknown: Vec<Unknown>,
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
}

/// The load generator's own footprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of the process with all its threads.
    pub user_ns: Option<u64>,
    /// System CPU time, the kernel's I/O workers included.
    pub system_ns: Option<u64>,
    /// Bytes that the process caused to be read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process caused to be written to storage.
    pub storage_written_bytes: Option<u64>,
    /// Most memory resident.
    pub resident_bytes_max: Option<u64>,
    /// Largest time that the generator itself was late (open loop).
    pub lag_ns_max: Option<u64>,
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
}

/// What the operations themselves were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadShape {
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
}
