//! Keys and limits for evidence imported from other tools.

/// Driver name of results from a published table. Their latencies are rounded, and their queue
/// depth is often the reader's guess.
pub const TABLE_KIND: &str = "published table";
/// Counter of a result whose tool wrote zero-filled buffers.
pub const ZERO_BUFFERS: &str = "zero_buffers";
/// Counter of a result that does not state whether access was random or sequential.
pub const PATTERN_NOT_STATED: &str = "pattern_not_stated";

/// Group of reads that verify written data: they moved bytes, but are not part of the workload.
pub const VERIFY_GROUP: &str = "verify";

/// Shortest measurement accepted without a warning, in nanoseconds: 30 s of warm-up plus 30 s of
/// data. Claims about sustained rates need more.
pub const MEASURE_NS_MIN: u64 = 60_000_000_000;

/// Names of per-job counters that the totals lack.
pub mod bundle_key {
    /// Returns the counter name of the run time of a job, in nanoseconds.
    #[must_use]
    pub fn runtime_ns(instance: u32) -> String {
        format!("job{instance}.runtime_ns")
    }

    /// Returns the counter name of a job's operations in flight. Results without that number lack
    /// the counter.
    #[must_use]
    pub fn outstanding(instance: u32) -> String {
        format!("job{instance}.outstanding")
    }
}
