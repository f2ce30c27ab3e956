//! CPU, memory and threads of the load generator itself.

use serde::{Deserialize, Serialize};

/// The load generator's own footprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User CPU time of the process with all its threads.
    pub user_ns: Option<u64>,
    /// System CPU time, the kernel's I/O workers included.
    pub system_ns: Option<u64>,
    /// Bytes that the process caused to be read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process caused to be written to storage: written past the page cache, or made
    /// dirty in it.
    pub storage_written_bytes: Option<u64>,
    /// Bytes of those that were dirty and taken back before they were written.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Most memory resident.
    pub resident_bytes_max: Option<u64>,
    /// Largest time that the generator itself was late.
    pub lag_ns_max: Option<u64>,
    /// How long operations that could start stood in the generator before they were handed over, in
    /// the measured phase: taking completions one after the other, making content, waiting for a
    /// CPU. It is no part of a closed loop's latency. `None` where it wasn't recorded. Its histogram
    /// is `generator.lag` of `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// The same of operations that waited because as many were in flight as may be: the target's
    /// lateness, in open loops and under rate caps.
    #[serde(default)]
    pub held: Option<Lag>,
    /// Starts that a schedule asked for and that were never given: the measurement ended before.
    #[serde(default)]
    pub starts_never_given: Option<u64>,
    /// The threads that issued, in order.
    #[serde(default)]
    pub threads: Vec<GeneratorThread>,
    /// Largest share of its CPU that one of its threads used.
    #[serde(default)]
    pub busiest_thread_share: Option<f64>,
    /// Page faults that had to read.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Times that it gave its CPU up.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Times that its CPU was taken from it.
    #[serde(default)]
    pub switches_forced: Option<u64>,
}

/// How long operations waited before they were handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Operations handed over.
    pub operations: u64,
    /// Sum of their waits.
    pub wait_ns_sum: u64,
    /// Median.
    pub wait_ns_p50: u64,
    /// 99th percentile.
    pub wait_ns_p99: u64,
    /// Longest.
    pub wait_ns_max: u64,
}

/// A thread of the load generator that issued operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// Its name.
    pub name: String,
    /// The CPU that it was pinned to; `None`: the scheduler placed it.
    pub cpu: Option<u32>,
    /// Why.
    pub why: String,
    /// CPUs that it was seen on at the ends of intervals, ascending.
    pub ran_on: Vec<u32>,
    /// User CPU time in the measured phase.
    pub user_ns: u64,
    /// System CPU time in the measured phase, without that of the kernel's I/O workers.
    pub system_ns: u64,
    /// Time in the measured phase in which it watched the clock for a start that was near, or polled in
    /// vain for a completion, and would have taken work: busy by the CPU's account, and not at its
    /// limit. `None` where it wasn't recorded.
    pub spun_ns: Option<u64>,
}
