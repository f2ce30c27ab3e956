//! CPU, memory and threads of the load generator.

use serde::{Deserialize, Serialize};

/// Resource usage of the load generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of all threads in the process.
    pub user_ns: Option<u64>,
    /// System CPU time, including the kernel's I/O workers.
    pub system_ns: Option<u64>,
    /// Bytes that the process read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process wrote with direct I/O, or dirtied in the page cache.
    pub storage_written_bytes: Option<u64>,
    /// Part of the written bytes that was discarded before write-back.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Peak resident memory.
    pub resident_bytes_max: Option<u64>,
    /// Largest delay that the generator itself caused.
    pub lag_ns_max: Option<u64>,
    /// Time that operations which could have started spent in the generator before submission, in
    /// the measured phase. Possible causes: handling of other completions, content generation, and
    /// waits for a CPU. The latency of a closed loop does not include this time. `None` if it was
    /// not recorded. The histogram is `generator.lag` in `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// Time that operations waited because the in-flight limit was reached. The target causes this
    /// delay; it occurs in open loops and with rate limits.
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
    /// Page faults that required a read.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Voluntary context switches.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Involuntary context switches.
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
    /// Reason for the placement.
    pub why: String,
    /// CPUs on which the thread ran at the ends of intervals, in ascending order.
    pub ran_on: Vec<u32>,
    /// User CPU time in the measured phase.
    pub user_ns: u64,
    /// System CPU time in the measured phase, without the kernel's I/O workers.
    pub system_ns: u64,
    /// Time that the thread spent busy-waiting in the measured phase: before the start of an
    /// operation, or while polling for a completion. It is busy CPU time although the thread was
    /// available for work. `None` if it was not recorded.
    pub spun_ns: Option<u64>,
}
