//! Exact sums of operations and of waits, which all drivers use.

/// Sums for the operations of one class over a period. If no operations were
/// [`counted`](Self::counted), sums and maxima are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTotals {
    /// Number of operations that completed without error.
    pub operations: u64,
    /// Bytes that these operations transferred.
    pub bytes: u64,
    /// Sum of times from the intended start to the completion.
    pub latency_ns_sum: u64,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// Sum of times from the submission to the completion.
    pub service_ns_sum: u64,
    /// Largest service time.
    pub service_ns_max: u64,
    /// Number of operations that had not completed when the thread ended. Their waiting times until
    /// then are counted as latencies and service times, and are lower bounds.
    pub abandoned: u64,
    /// Number of operations that were due in the measured phase and had not started when the thread
    /// ended. Their waiting times are counted as latencies but not as service times.
    pub never_started: u64,
    /// Number of operations that failed, transferred too few bytes, or did not pass the check of
    /// their content. They have no latency.
    pub errors: u64,
}

impl OperationTotals {
    /// Returns the number of operations that have a latency, which are those that completed, were
    /// abandoned or never started.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.operations + self.abandoned + self.never_started
    }

    /// Adds totals of another interval or thread.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.add_latency(other.latency_ns_sum, other.latency_ns_max);
        self.add_service(other.service_ns_sum, other.service_ns_max);
        self.abandoned += other.abandoned;
        self.never_started += other.never_started;
        self.errors += other.errors;
    }

    #[inline(always)]
    pub(crate) fn add_latency(&mut self, ns_sum: u64, ns_max: u64) {
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(ns_sum);
        self.latency_ns_max = self.latency_ns_max.max(ns_max);
    }

    #[inline(always)]
    pub(crate) fn add_service(&mut self, ns_sum: u64, ns_max: u64) {
        self.service_ns_sum = self.service_ns_sum.saturating_add(ns_sum);
        self.service_ns_max = self.service_ns_max.max(ns_max);
    }
}

/// Sums of the waits of operations before their submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of operations.
    pub count: u64,
    /// Sum of waits.
    pub ns_sum: u64,
    /// Longest wait.
    pub ns_max: u64,
}

impl Waits {
    /// Adds waits of another interval or thread.
    #[inline(always)]
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.ns_sum = self.ns_sum.saturating_add(other.ns_sum);
        self.ns_max = self.ns_max.max(other.ns_max);
    }
}
