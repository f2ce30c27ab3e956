//! CPU, memory and threads of the load generator.

use serde::{Deserialize, Serialize};

/// Resource usage of the load generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of all threads in the process.
    pub user_ns: Option<u64>,
    /// System CPU time. It includes the time of the kernel's I/O workers.
    pub system_ns: Option<u64>,
    /// Bytes that the process read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process wrote, either with direct I/O or to the page cache.
    pub storage_written_bytes: Option<u64>,
    /// Number of these written bytes that were discarded before write-back.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Peak resident memory.
    pub resident_bytes_max: Option<u64>,
    /// Largest delay that the generator itself caused.
    pub lag_ns_max: Option<u64>,
    /// In the measured phase: time between the moment when an operation could have started and its
    /// submission. The generator spends this time on other completions, on generating content, or
    /// waiting for a CPU. In a closed loop, latencies do not include it. `None` if it was not
    /// recorded. The histogram is `generator.lag` in `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// Time that operations waited because the in-flight limit was reached. The target, not the
    /// generator, causes this delay. It can occur only in open loops and with rate limits.
    #[serde(default)]
    pub held: Option<Lag>,
    /// Number of scheduled operations that were never submitted, because the measurement ended
    /// first.
    #[serde(default)]
    pub starts_never_given: Option<u64>,
    /// The threads that issued operations, in order.
    #[serde(default)]
    pub threads: Vec<GeneratorThread>,
    /// Share of one CPU that the busiest generator thread used.
    #[serde(default)]
    pub busiest_thread_share: Option<f64>,
    /// Number of page faults for which data had to be read from storage.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Number of voluntary context switches.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Number of involuntary context switches.
    #[serde(default)]
    pub switches_forced: Option<u64>,
}

/// Time that operations waited before submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Number of submitted operations.
    pub operations: u64,
    /// Sum of the waiting times.
    pub wait_ns_sum: u64,
    /// Median wait.
    pub wait_ns_p50: u64,
    /// 99th percentile of the waiting times.
    pub wait_ns_p99: u64,
    /// Longest wait.
    pub wait_ns_max: u64,
}

/// A thread of the load generator that issued operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// Thread name.
    pub name: String,
    /// CPU to which the thread was pinned; `None` if the scheduler placed the thread.
    pub cpu: Option<u32>,
    /// Reason why the thread was pinned to this CPU, or was not pinned.
    pub why: String,
    /// CPUs on which the thread ran, sampled at the end of each interval, in ascending order.
    pub ran_on: Vec<u32>,
    /// User CPU time in the measured phase.
    pub user_ns: u64,
    /// System CPU time in the measured phase, without the kernel's I/O workers.
    pub system_ns: u64,
    /// Time that the thread spent busy-waiting in the measured phase: until the start of an
    /// operation, or while it polled for a completion. This counts as CPU time, although the thread
    /// could have done other work. `None` if it was not recorded.
    pub spun_ns: Option<u64>,
}
