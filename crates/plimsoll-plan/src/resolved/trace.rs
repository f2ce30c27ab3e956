//! A trace whose operations a stream replays.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Where the operations of a trace go on a target of another size.
    TraceMap {
        /// Their own places where the target is large enough, else as `compact`.
        Fit = "fit",
        /// Their own places; what lies beyond the target is left out.
        Keep = "keep",
        /// The pieces of 1 MiB that the trace touches, one after the other; what does not fit is wrapped.
        Compact = "compact",
        /// Their own places modulo the size of the target.
        Wrap = "wrap",
        /// Pieces of 1 MiB spread over the target in proportion.
        Scale = "scale",
    }
}

/// A trace, as the plan names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// The file.
    pub file: String,
    /// SHA-256 of the file: another one is not replayed.
    pub sha256: String,
    /// Reads and writes in it.
    pub operations: u64,
    /// From the first to the last.
    pub span_ns: u64,
    /// How many times as fast as recorded; absent: as fast as the target goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Where its operations go.
    pub map: TraceMap,
    /// A replay whose operations start later than this after their times, at the 99th percentile or at the end, has
    /// fallen behind.
    pub lag_max_ns: u64,
}
