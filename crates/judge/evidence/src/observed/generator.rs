//! CPU, memory and threads of the load generator.

use serde::{Deserialize, Serialize};

/// Resource usage of the load generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of the process, all threads.
    pub user_ns: Option<u64>,
    /// System CPU time, including the kernel's I/O workers.
    pub system_ns: Option<u64>,
    /// Bytes that the process read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process wrote to storage: written directly, or dirtied in the page cache.
    pub storage_written_bytes: Option<u64>,
    /// Part of the written bytes that was discarded before write-back.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Peak resident memory.
    pub resident_bytes_max: Option<u64>,
    /// Largest delay that the generator itself caused.
    pub lag_ns_max: Option<u64>,
    /// Time that startable operations spent in the generator before submission, in the measured
    /// phase. Causes are completions handled one after another, content generation, and waits for a
    /// CPU. A closed loop's latency does not include it. `None` if not recorded. The histogram is
    /// `generator.lag` in `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// The same for operations that waited because the in-flight limit was reached. The target
    /// causes this delay, in open loops and under rate limits.
    #[serde(default)]
    pub held: Option<Lag>,
    /// Scheduled starts that were never submitted because the measurement ended first.
    #[serde(default)]
    pub starts_never_given: Option<u64>,
    /// Issuing threads, in order.
    #[serde(default)]
    pub threads: Vec<GeneratorThread>,
    /// CPU share of the busiest generator thread, of one CPU.
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
    /// Sum of the waits.
    pub wait_ns_sum: u64,
    /// Median wait.
    pub wait_ns_p50: u64,
    /// 99th percentile of the waits.
    pub wait_ns_p99: u64,
    /// Longest wait.
    pub wait_ns_max: u64,
}

/// Thread of the load generator that issued operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// Thread name.
    pub name: String,
    /// CPU that the thread was pinned to; `None` if the scheduler placed it.
    pub cpu: Option<u32>,
    /// Reason for the placement.
    pub why: String,
    /// CPUs that it ran on at the ends of intervals, ascending.
    pub ran_on: Vec<u32>,
    /// User CPU time in the measured phase.
    pub user_ns: u64,
    /// System CPU time in the measured phase, without the kernel's I/O workers.
    pub system_ns: u64,
    /// Time in the measured phase that the thread spent busy-waiting: before a start, or polling
    /// for a completion that had not arrived. It counts as busy CPU time, although the thread was
    /// available for work. `None` if not recorded.
    pub spun_ns: Option<u64>,
}
