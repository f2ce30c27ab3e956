//! Trace that a stream replays.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Mapping of a trace's offsets to a target of another size.
    TraceMap {
        /// Original offsets if the target is large enough, else `compact`.
        Fit = "fit",
        /// Original offsets; operations beyond the target are skipped.
        Keep = "keep",
        /// The 1 MiB pieces that the trace touches, placed consecutively; the rest wraps around.
        Compact = "compact",
        /// Original offsets modulo the target size.
        Wrap = "wrap",
        /// Pieces of 1 MiB, spread over the target in proportion.
        Scale = "scale",
    }
}

/// Trace, as named in the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Path of the file.
    pub file: String,
    /// SHA-256 of the file. A different file is rejected.
    pub sha256: String,
    /// Number of reads and writes.
    pub operations: u64,
    /// Time from the first operation to the last.
    pub span_ns: u64,
    /// Speed relative to the recording; absent: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Mapping of its offsets.
    pub map: TraceMap,
    /// Maximum lag of operations behind their due times, for the 99th percentile and at the end.
    /// Beyond that, the replay has fallen behind.
    pub lag_max_ns: u64,
}
