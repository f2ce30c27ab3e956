//! CPUs, memory and clocks of the host, and the I/O of other processes on the host's storage.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// CPU usage of the host. The values are shares of the time of all CPUs, from 0 to 1. Each sample
/// spans one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Mean share of CPU time that was busy.
    pub busy_avg: Option<f64>,
    /// Share of busy CPU time in the least busy sample.
    pub busy_min: Option<f64>,
    /// Share of busy CPU time in the busiest sample.
    pub busy_max: Option<f64>,
    /// Mean share of CPU time that the hypervisor stole.
    pub steal_avg: Option<f64>,
    /// Share of stolen CPU time in the sample with the most stolen time.
    pub steal_max: Option<f64>,
    /// Mean share of time for which the busiest CPU was busy.
    pub busiest_cpu_avg: Option<f64>,
    /// Mean frequency of the CPUs in the sample with the lowest mean; `None` if the kernel does not
    /// report frequencies.
    #[serde(default)]
    pub frequency_hz_min: Option<u64>,
    /// Mean frequency of the CPUs in the sample with the highest mean.
    #[serde(default)]
    pub frequency_hz_max: Option<u64>,
    /// Time during which the CPU quota of the control group throttled its tasks.
    #[serde(default)]
    pub throttled_ns: Option<u64>,
}

/// Server that provides the target. An example is the server of a network or FUSE file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Network address or FUSE mount at which the server serves the target.
    pub serves: String,
    /// True if the server is on this host; `None` if unknown.
    pub local: Option<bool>,
    /// Names and process ids of the server processes on this host.
    pub processes: Vec<String>,
    /// Storage I/O of the server processes; `None` if it could not be read.
    pub moved: Option<IoBytes>,
    /// True if the server processes have connections to other hosts. They may forward requests to
    /// these hosts.
    pub relays: bool,
    /// Storage I/O of processes that are connected to the server by local sockets. The server may
    /// forward requests to these processes. Absent if no process is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<IoBytes>,
    /// Number of connections that other clients have to the server. These clients may cause a part
    /// of the server's I/O.
    #[serde(default)]
    pub others: u64,
}

/// Storage I/O of those disks of this host that the target does not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherDisks {
    /// Physical devices.
    pub disks: IoBytes,
    /// I/O of block devices that store their data in memory.
    pub memory: IoBytes,
}

/// Memory of the host, at the start and at the end of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Size of the page cache at the start of the measured phase, in bytes.
    pub cached_bytes_before: Option<u64>,
    /// Size of the page cache at the end of the measured phase, in bytes.
    pub cached_bytes_after: Option<u64>,
    /// Bytes that were dirty or under write-back at the start of the measured phase.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes that were dirty or under write-back at the end of the measured phase.
    pub dirty_bytes_after: Option<u64>,
    /// Number of dirty bytes in the sample with the most dirty bytes.
    pub dirty_bytes_max: Option<u64>,
}

/// Pressure stall information of the host (`/proc/pressure`), as shares of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Share of time in which at least one task was waiting for I/O.
    pub io_some_share: Option<f64>,
    /// Share of time in which all non-idle tasks were waiting for I/O at the same time.
    pub io_full_share: Option<f64>,
    /// Share of time in which at least one runnable task had no CPU.
    pub cpu_some_share: Option<f64>,
    /// Share of time in which at least one task was waiting for memory.
    pub memory_some_share: Option<f64>,
}

/// Storage I/O that other processes did on any device (`/proc/PID/io`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Bytes that these processes read from storage; `None` if the counters of no process could be
    /// read.
    pub storage_read_bytes: Option<u64>,
    /// Bytes that these processes wrote to storage.
    pub storage_written_bytes: Option<u64>,
    /// Name and process id of the process that did the most I/O.
    pub largest: Option<String>,
    /// Number of processes whose counters could not be read.
    pub unreadable: u64,
    /// True if Plimsoll ran in a container and could not see processes outside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_unseen: bool,
}

impl Neighbours {
    /// Returns true if the counters of all processes on the host could be read.
    pub fn is_whole(&self) -> bool {
        self.storage_read_bytes.is_some() && self.unreadable == 0 && !self.outside_unseen
    }
}

/// Result of comparing the clocks of the host, and a list of the pauses of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWatch {
    /// Largest step of the wall clock between two samples. A step counts only if it is too large
    /// for a gradual clock adjustment.
    pub step_ns_max: Option<u64>,
    /// Description of a change of the kernel's clock source during the phase; absent if the clock
    /// source did not change.
    pub source_changed: Option<String>,
    /// Length of the observation, according to the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Length of the observation, according to the kernel's clock (`/proc/uptime`). This clock
    /// continues while the machine is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// Total length of all pauses of 1 s or more. In a pause, the process was stopped or frozen, or
    /// its machine was suspended. Absent if pauses were not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// The first hundred pauses in which a sleeping watchdog thread woke up at least 1 s too late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// A pause: a time in which a thread did not run although it should have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Start of the pause, relative to the start of the run.
    pub at_ns: u64,
    /// Duration of the pause. If the clocks differ, it is the longest duration that a clock showed.
    pub duration_ns: u64,
    /// Cause.
    pub kind: PauseKind,
    /// Part of the pause in which the thread was ready to run but got no CPU, for example because
    /// of the hypervisor or a quota. Absent if the kernel does not report this time.
    pub withheld_ns: Option<u64>,
}

/// Reason why the thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// A signal stopped the process until SIGCONT.
    Signalled,
    /// The thread was neither running nor runnable, because of a freezer, a debugger or a paused
    /// machine.
    Frozen,
    /// The machine was suspended.
    Suspended,
    /// The process was ready to run but got no CPU, because of other processes, the hypervisor or a
    /// quota.
    Busy,
    /// The cause is unknown.
    Unknown,
}

impl PauseKind {
    /// Returns true if the process was stopped, and not only waiting for a CPU.
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Signalled | Self::Frozen | Self::Suspended)
    }
}
