//! The host: processors, memory, clocks, and who else used its storage.

use serde::{Deserialize, Serialize};

use super::Moved;

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
