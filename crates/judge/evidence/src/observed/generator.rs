//! CPU time, memory and threads of the load generator.

use serde::{Deserialize, Serialize};

/// Resource usage of the load generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time that all threads of the process spent in user mode.
    pub user_ns: Option<u64>,
    /// CPU time that the process spent in the kernel. It includes the time of the kernel's I/O
    /// workers.
    pub system_ns: Option<u64>,
    /// Bytes that the process read from storage (`/proc/self/io`).
    pub storage_read_bytes: Option<u64>,
    /// Bytes that the process wrote with direct I/O or to the page cache.
    pub storage_written_bytes: Option<u64>,
    /// Number of those written bytes that were discarded before write-back.
    #[serde(default)]
    pub storage_cancelled_bytes: Option<u64>,
    /// Largest resident memory of the process.
    pub resident_bytes_max: Option<u64>,
    /// Largest delay that the generator itself caused.
    pub lag_ns_max: Option<u64>,
    /// Time from the moment when an operation could have started until its submission, in the
    /// measured phase. The generator spends this time on other completions, on generating content,
    /// or waiting for a CPU. In a closed loop, latencies do not include it. `None` if it was not
    /// recorded. The histogram is `generator.lag` in `latency.hlog`.
    #[serde(default)]
    pub lag: Option<Lag>,
    /// Time for which operations waited because the maximum number of operations was in flight. The
    /// target causes this delay, and not the generator. The delay can occur only in open loops and
    /// with rate limits.
    #[serde(default)]
    pub held: Option<Lag>,
    /// Number of operations that were scheduled but never submitted, because the measurement ended
    /// before.
    #[serde(default)]
    pub starts_never_given: Option<u64>,
    /// The threads that issued operations, in the order of their numbers.
    #[serde(default)]
    pub threads: Vec<GeneratorThread>,
    /// CPU time of the busiest generator thread, as a share of one CPU.
    #[serde(default)]
    pub busiest_thread_share: Option<f64>,
    /// Number of major page faults, for which data had to be read from storage.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Number of voluntary context switches.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Number of involuntary context switches.
    #[serde(default)]
    pub switches_forced: Option<u64>,
}

/// Times that operations waited before their submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Number of operations that were submitted.
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
    /// Reason why the thread was pinned to this CPU, or reason why it was not pinned.
    pub why: String,
    /// CPUs on which the thread ran, in ascending order. They are sampled at the end of each
    /// interval.
    pub ran_on: Vec<u32>,
    /// CPU time that the thread spent in user mode in the measured phase.
    pub user_ns: u64,
    /// CPU time that the thread spent in the kernel in the measured phase, without the time of the
    /// kernel's I/O workers.
    pub system_ns: u64,
    /// Time that the thread spent busy-waiting in the measured phase. It waited until an operation
    /// was due to start, or polled for a completion. This time counts as CPU time, although the
    /// thread could have done other work. `None` if it was not recorded.
    pub spun_ns: Option<u64>,
    /// Time for which the thread was runnable but had no CPU in the measured phase, because other
    /// threads or a CPU quota prevented it. `None` if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_wait_ns: Option<u64>,
}
