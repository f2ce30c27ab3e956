//! CPUs, memory and clocks of the host, and I/O that other processes issue to its storage.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// CPU usage of the host, as shares of all its CPUs (0 to 1). Each sample spans one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Mean share of time in which CPUs were busy.
    pub busy_avg: Option<f64>,
    /// Smallest share of busy time in a sample.
    pub busy_min: Option<f64>,
    /// Largest share of busy time in a sample.
    pub busy_max: Option<f64>,
    /// Mean share of CPU time that the hypervisor stole.
    pub steal_avg: Option<f64>,
    /// Largest share of stolen CPU time in a sample.
    pub steal_max: Option<f64>,
    /// Mean usage of the CPU that was busiest.
    pub busiest_cpu_avg: Option<f64>,
    /// Lowest mean frequency of the CPUs in a sample; `None` if the kernel does not report
    /// frequencies.
    #[serde(default)]
    pub frequency_hz_min: Option<u64>,
    /// Highest mean frequency of the CPUs in a sample.
    #[serde(default)]
    pub frequency_hz_max: Option<u64>,
    /// Time during which the CPU quota of the control group throttled its tasks.
    #[serde(default)]
    pub throttled_ns: Option<u64>,
}

/// Server that provides the target, for example of a network or FUSE file system.
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
    /// True if the server processes have connections to other hosts, to which they may forward
    /// requests.
    pub relays: bool,
    /// Storage I/O of processes that are connected to the server by local sockets. The server may
    /// forward requests to them. Absent if there are no such processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<IoBytes>,
    /// Number of connections from other clients. These clients may cause a part of the server's
    /// I/O.
    #[serde(default)]
    pub others: u64,
}

/// Storage I/O of this host's disks that the target does not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherDisks {
    /// Physical devices.
    pub disks: IoBytes,
    /// I/O of devices that keep their data in memory.
    pub memory: IoBytes,
}

/// Memory of the host at the start and at the end of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Size of the page cache at the start, in bytes.
    pub cached_bytes_before: Option<u64>,
    /// Size of the page cache at the end, in bytes.
    pub cached_bytes_after: Option<u64>,
    /// Bytes that were dirty or under write-back at the start.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes that were dirty or under write-back at the end.
    pub dirty_bytes_after: Option<u64>,
    /// Largest number of dirty bytes in a sample.
    pub dirty_bytes_max: Option<u64>,
}

/// Pressure stall information of the host (`/proc/pressure`), as shares of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Share of time in which at least one task was waiting for I/O.
    pub io_some_share: Option<f64>,
    /// Share of time in which all tasks that were not idle were waiting for I/O.
    pub io_full_share: Option<f64>,
    /// Share of time in which at least one runnable task had no CPU.
    pub cpu_some_share: Option<f64>,
    /// Share of time in which at least one task was waiting for memory.
    pub memory_some_share: Option<f64>,
}

/// Storage I/O of other processes (`/proc/PID/io`), on any device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Bytes that these processes read from storage; `None` if the counters of no process could be
    /// read.
    pub storage_read_bytes: Option<u64>,
    /// Bytes that these processes wrote to storage.
    pub storage_written_bytes: Option<u64>,
    /// Name and process id of the process with the most I/O.
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

/// Result of comparing the host's clocks, and a list of the pauses of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWatch {
    /// Largest step of the wall clock between two samples. Only steps that are too large for
    /// gradual clock adjustment count.
    pub step_ns_max: Option<u64>,
    /// Description of a change of the kernel's clock source during the phase; absent if it did not
    /// change.
    pub source_changed: Option<String>,
    /// Length of the observation, according to the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Length of the observation, according to the kernel's clock (`/proc/uptime`). This clock
    /// continues while the machine is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// Total length of all pauses of 1 s or more. In a pause, the process was stopped or frozen, or
    /// its machine was suspended. Absent if this was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// The first hundred times that a sleeping watchdog thread woke at least 1 s too late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// A time in which a thread did not run, although it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Start of the pause, relative to the start of the run.
    pub at_ns: u64,
    /// Duration of the pause. If clocks differ, it is from the clock that showed the longest pause.
    pub duration_ns: u64,
    /// Cause.
    pub kind: PauseKind,
    /// Part of the pause in which the thread was ready to run but got no CPU, for example because
    /// of the hypervisor or a quota. Absent if the kernel does not report it.
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
