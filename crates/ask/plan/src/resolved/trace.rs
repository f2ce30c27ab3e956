//! Trace that a stream replays.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Mapping of a trace's offsets to a target that has another size than the traced device.
    TraceMap {
        /// Original offsets if the target is large enough, otherwise as `compact`.
        Fit = "fit",
        /// Original offsets; operations beyond the end of the target are skipped.
        Keep = "keep",
        /// Regions of 1 MiB that the trace accesses, placed one after another. Regions that do not
        /// fit wrap around to the start of the target.
        Compact = "compact",
        /// Original offsets modulo the target size.
        Wrap = "wrap",
        /// Regions of 1 MiB, each at the same relative position in the target as in the traced
        /// device.
        Scale = "scale",
    }
}

/// Trace that the plan replays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Path of the file.
    pub file: String,
    /// SHA-256 of the file. A file with another hash is rejected.
    pub sha256: String,
    /// Number of reads and writes.
    pub operations: u64,
    /// Time from the first operation of the trace to the last.
    pub span_ns: u64,
    /// Speed relative to the recording; `None`: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Mapping of the trace's offsets.
    pub map: TraceMap,
    /// Maximum lag of operations after their due times, for the 99th percentile and for the last
    /// operation. If the lag is larger, the replay has fallen behind.
    pub lag_max_ns: u64,
}
