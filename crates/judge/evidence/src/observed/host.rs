//! CPUs, memory and clocks of the host, and other users of its storage.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// CPU of the host, as shares of all its CPUs (0 to 1), from one-second samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Mean share of busy time.
    pub busy_avg: Option<f64>,
    /// Smallest sample.
    pub busy_min: Option<f64>,
    /// Largest sample.
    pub busy_max: Option<f64>,
    /// Mean share of time stolen by the hypervisor.
    pub steal_avg: Option<f64>,
    /// Largest share of stolen time.
    pub steal_max: Option<f64>,
    /// Mean share of the busiest single CPU.
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

/// Server of a target, if the host's kernel does not serve it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Address or FUSE mount that it serves.
    pub serves: String,
    /// True if the server is on this host; `None` if unknown.
    pub local: Option<bool>,
    /// Names and ids of the server processes on this host.
    pub processes: Vec<String>,
    /// Storage I/O of the server processes; `None` if it could not be read.
    pub moved: Option<IoBytes>,
    /// True if the server processes have connections to other hosts and may forward requests.
    pub relays: bool,
    /// Storage I/O of processes connected to the server by local sockets, to which it may forward
    /// requests. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<IoBytes>,
    /// Number of connections from other clients. Part of the server's I/O may be for these clients.
    #[serde(default)]
    pub others: u64,
}

/// Storage I/O of this host's disks that are not behind the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherDisks {
    /// Physical devices.
    pub disks: IoBytes,
    /// Devices in memory.
    pub memory: IoBytes,
}

/// Memory of the host at the start and end of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Page cache at the start.
    pub cached_bytes_before: Option<u64>,
    /// Page cache at the end.
    pub cached_bytes_after: Option<u64>,
    /// Bytes dirty or under write-back at the start.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes dirty or under write-back at the end.
    pub dirty_bytes_after: Option<u64>,
    /// Largest sample of dirty bytes.
    pub dirty_bytes_max: Option<u64>,
}

/// Pressure stall information of the host (`/proc/pressure`), as shares of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Share of time in which at least one task was blocked on I/O.
    pub io_some_share: Option<f64>,
    /// Share of time in which all runnable tasks were blocked on I/O.
    pub io_full_share: Option<f64>,
    /// Share of time in which at least one task was runnable without a CPU.
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
    /// Name and id of the process with the most I/O.
    pub largest: Option<String>,
    /// Number of processes whose counters could not be read.
    pub unreadable: u64,
    /// True if processes outside a container are invisible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_unseen: bool,
}

impl Neighbours {
    /// True if all processes of the host were readable.
    pub fn is_whole(&self) -> bool {
        self.storage_read_bytes.is_some() && self.unreadable == 0 && !self.outside_unseen
    }
}

/// Comparison of the clocks, and pauses of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockWatch {
    /// Largest step of the wall clock between two samples, in excess of possible slewing.
    pub step_ns_max: Option<u64>,
    /// Change of the kernel's clock source during the phase, if any.
    pub source_changed: Option<String>,
    /// Observed time on the run's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Observed time on the kernel's clock (`/proc/uptime`), which includes suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// Total time in pauses of 1 s or more in which the process was stopped, frozen, or suspended
    /// with its machine. Absent if not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Pauses of 1 s or more in which a sleeping watchdog thread was not woken; the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// Time in which a runnable thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Start, from the start of the run.
    pub at_ns: u64,
    /// Duration, on the clock that shows the longest pause.
    pub duration_ns: u64,
    /// Cause.
    pub kind: PauseKind,
    /// Part of the pause in which the thread was runnable but had no CPU, or in which the
    /// hypervisor or a quota withheld the CPU. Absent if the kernel does not report it.
    pub withheld_ns: Option<u64>,
}

/// Reason why a thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// A signal stopped the process until SIGCONT.
    Signalled,
    /// The thread was neither running nor runnable: a freezer, a debugger or a paused machine.
    Frozen,
    /// The machine was suspended.
    Suspended,
    /// The CPU was busy, stolen or throttled by a quota. The process was not stopped.
    Busy,
    /// The cause is unknown.
    Unknown,
}

impl PauseKind {
    /// True if the process was stopped, and not only waiting for a CPU.
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Signalled | Self::Frozen | Self::Suspended)
    }
}
