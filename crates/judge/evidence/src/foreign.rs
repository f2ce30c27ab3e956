//! Keys and limits for evidence that is imported from other tools.

/// Driver name of results that are from a published table. The latencies in such a table are
/// rounded. The queue depth is often a guess by the person who copied the table.
pub const TABLE_KIND: &str = "published table";
/// Name of a counter. A result has this counter if its tool wrote buffers that contained only
/// zeroes.
pub const ZERO_BUFFERS: &str = "zero_buffers";
/// Name of a counter. A result has this counter if it does not state whether access was random or
/// sequential.
pub const PATTERN_NOT_STATED: &str = "pattern_not_stated";

/// Pause in the plan of a result that does not state the number of operations in flight. Because of
/// the pause, Little's law is not applied to the result.
pub const DEPTH_NOT_STATED_PAUSE_NS: u64 = 1;

/// Group of the reads that verify written data. These reads transfer bytes, but are not part of the
/// workload.
pub const VERIFY_GROUP: &str = "verify";

/// Shortest measurement that is accepted without a warning, in nanoseconds. It consists of 30 s of
/// warm-up and 30 s of data. Claims about sustained rates require a longer measurement.
pub const MEASURE_NS_MIN: u64 = 60_000_000_000;

/// Names of counters that exist for each job, but not for the totals over all jobs.
pub mod bundle_key {
    /// Returns the name of the counter that contains a job's run time in nanoseconds.
    #[must_use]
    pub fn runtime_ns(instance: u32) -> String {
        format!("job{instance}.runtime_ns")
    }

    /// Returns the name of the counter that contains a job's number of operations in flight. The
    /// counter is absent if the result does not state the number.
    #[must_use]
    pub fn outstanding(instance: u32) -> String {
        format!("job{instance}.outstanding")
    }
}
