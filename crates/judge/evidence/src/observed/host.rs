//! CPUs, memory and clocks of the host, and other users of the host's storage.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// CPU usage of the host, as shares of all its CPUs (0 to 1), from samples over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Mean share of time in which CPUs were busy.
    pub busy_avg: Option<f64>,
    /// Smallest sample.
    pub busy_min: Option<f64>,
    /// Largest sample.
    pub busy_max: Option<f64>,
    /// Mean share of time that the hypervisor stole.
    pub steal_avg: Option<f64>,
    /// Largest share of stolen time.
    pub steal_max: Option<f64>,
    /// Mean usage of the busiest single CPU.
    pub busiest_cpu_avg: Option<f64>,
    /// Lowest sample of the CPUs' mean frequency; `None` if the kernel does not report it.
    #[serde(default)]
    pub frequency_hz_min: Option<u64>,
    /// Highest sample of the CPUs' mean frequency.
    #[serde(default)]
    pub frequency_hz_max: Option<u64>,
    /// Time that the control group's CPU quota throttled its tasks.
    #[serde(default)]
    pub throttled_ns: Option<u64>,
}

/// Server of a target that the host's kernel does not serve itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Address or FUSE mount that the server serves.
    pub serves: String,
    /// True if the server is on this host; `None` if unknown.
    pub local: Option<bool>,
    /// Names and process ids of the server processes on this host.
    pub processes: Vec<String>,
    /// Storage I/O of the server processes; `None` if it could not be read.
    pub moved: Option<IoBytes>,
    /// True if the server processes have connections to other hosts and may forward requests.
    pub relays: bool,
    /// Storage I/O of processes that are connected to the server by local sockets. The server may
    /// forward requests to them. Absent if there are no such processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<IoBytes>,
    /// Number of connections from other clients. Part of the server's I/O may be for these clients.
    #[serde(default)]
    pub others: u64,
}

/// Storage I/O of this host's disks that the target does not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherDisks {
    /// Physical devices.
    pub disks: IoBytes,
    /// Devices in memory.
    pub memory: IoBytes,
}

/// Memory of the host at the start and at the end of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Size of the page cache at the start, in bytes.
    pub cached_bytes_before: Option<u64>,
    /// Size of the page cache at the end, in bytes.
    pub cached_bytes_after: Option<u64>,
    /// Bytes dirty or under write-back at the start.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes dirty or under write-back at the end.
    pub dirty_bytes_after: Option<u64>,
    /// Largest number of dirty bytes in a sample.
    pub dirty_bytes_max: Option<u64>,
}

/// Pressure stall information of the host (`/proc/pressure`), as shares of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Share of time in which at least one task was blocked on I/O.
    pub io_some_share: Option<f64>,
    /// Share of time in which all runnable tasks were blocked on I/O.
    pub io_full_share: Option<f64>,
    /// Share of time in which at least one runnable task had no CPU.
    pub cpu_some_share: Option<f64>,
    /// Share of time in which at least one task was blocked on memory.
    pub memory_some_share: Option<f64>,
}

/// Storage I/O of other processes (`/proc/PID/io`), on any device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Bytes read from storage; `None` if no process was readable.
    pub storage_read_bytes: Option<u64>,
    /// Bytes written to storage.
    pub storage_written_bytes: Option<u64>,
    /// Name and process id of the process with the most I/O.
    pub largest: Option<String>,
    /// Number of processes whose counters could not be read.
    pub unreadable: u64,
    /// True if processes outside a container are invisible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_unseen: bool,
}

impl Neighbours {
    /// Returns true if all processes of the host were readable.
    pub fn is_whole(&self) -> bool {
        self.storage_read_bytes.is_some() && self.unreadable == 0 && !self.outside_unseen
    }
}

/// Comparison of the clocks, and list of the pauses of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWatch {
    /// Largest step of the wall clock between two samples that slewing cannot explain.
    pub step_ns_max: Option<u64>,
    /// Change of the kernel's clock source during the phase; absent if it did not change.
    pub source_changed: Option<String>,
    /// Length of the observation on the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Length of the observation on the kernel's clock (`/proc/uptime`), which includes suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// Total time of pauses of 1 s or more in which the process was stopped or frozen, or its
    /// machine was suspended. Absent if this was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// The first hundred pauses of 1 s or more in which a sleeping watchdog thread was not woken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// A time during which a thread that should have run did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Start, from the start of the run.
    pub at_ns: u64,
    /// Duration, on the clock on which the pause was longest.
    pub duration_ns: u64,
    /// Cause.
    pub kind: PauseKind,
    /// Part of the pause in which the thread was runnable but had no CPU, or in which the
    /// hypervisor or a quota withheld the CPU. Absent if the kernel does not report it.
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
    /// The CPU was busy, or the hypervisor or a quota withheld it. The process was not stopped.
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
