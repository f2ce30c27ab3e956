//! Keys and limits for evidence imported from other tools.

/// Driver name of results from a published table. In such a table, latencies are rounded, and the
/// queue depth is often guessed by the reader.
pub const TABLE_KIND: &str = "published table";
/// Counter of a result whose tool wrote zero-filled buffers.
pub const ZERO_BUFFERS: &str = "zero_buffers";
/// Counter of a result that does not state whether access was random or sequential.
pub const PATTERN_NOT_STATED: &str = "pattern_not_stated";

/// Pause in the plan of a result that does not state its operations in flight, so that Little's law
/// is not applied.
pub const DEPTH_NOT_STATED_PAUSE_NS: u64 = 1;

/// Group of reads that verify written data: they transferred bytes, but are not part of the
/// workload.
pub const VERIFY_GROUP: &str = "verify";

/// Shortest measurement that is accepted without a warning, in nanoseconds: 30 s of warm-up plus 30
/// s of data. Claims about sustained rates require a longer measurement.
pub const MEASURE_NS_MIN: u64 = 60_000_000_000;

/// Names of counters for each job, which the totals lack.
pub mod bundle_key {
    /// Returns the name of the counter for a job's run time, in nanoseconds.
    #[must_use]
    pub fn runtime_ns(instance: u32) -> String {
        format!("job{instance}.runtime_ns")
    }

    /// Returns the name of the counter for a job's operations in flight. If a result does not state
    /// this number, the counter is absent.
    #[must_use]
    pub fn outstanding(instance: u32) -> String {
        format!("job{instance}.outstanding")
    }
}
