//! What evidence that was taken over from elsewhere says of itself beside its figures.

/// What made the load, as far as a table says: its latency is rounded, and how many operations were in
/// flight is often a guess of whoever reads it.
pub const TABLE_KIND: &str = "published table";
/// Counter of a result whose tool wrote buffers of zeroes.
pub const ZERO_BUFFERS: &str = "zero_buffers";
/// Counter of a result that does not say whether it was random or sequential.
pub const PATTERN_NOT_STATED: &str = "pattern_not_stated";

/// Shortest measurement that is taken from elsewhere without a word, nanoseconds: half a minute of
/// warm-up and half a minute to look at. Claims on what lasts ask for more.
pub const MEASURE_NS_MIN: u64 = 60_000_000_000;

/// Names of the counters that say of each job of a result what its totals do not.
pub mod bundle_key {
    /// How long the job with this instance number ran, nanoseconds.
    #[must_use]
    pub fn runtime_ns(instance: u32) -> String {
        format!("job{instance}.runtime_ns")
    }

    /// Operations that it keeps in flight; absent where that is not known.
    #[must_use]
    pub fn outstanding(instance: u32) -> String {
        format!("job{instance}.outstanding")
    }
}
