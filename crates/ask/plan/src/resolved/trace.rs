//! The trace that a stream replays.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Method by which the offsets of a trace are mapped to a target. The size of the target may
    /// differ from the size of the traced device.
    TraceMap {
        /// Uses the original offsets if the target is large enough, and otherwise the method
        /// `compact`.
        Fit = "fit",
        /// Uses the original offsets, and skips operations that extend beyond the end of the
        /// target.
        Keep = "keep",
        /// Places the regions that the trace accesses one after another. A region has 1 MiB. When
        /// the target is full, placing continues at the beginning of the target.
        Compact = "compact",
        /// Uses the original offsets modulo the target size.
        Wrap = "wrap",
        /// Places each region of 1 MiB at the same relative position as on the traced device.
        Scale = "scale",
    }
}

/// A trace that the plan replays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Path of the trace file.
    pub file: String,
    /// SHA-256 of the trace file. Plimsoll rejects a file with a different hash.
    pub sha256: String,
    /// Number of reads and writes in the trace.
    pub operations: u64,
    /// Time from the first operation of the trace to the last.
    pub span_ns: u64,
    /// Replay speed relative to the recording, or `None` to replay as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Method by which offsets are mapped to the target.
    pub map: TraceMap,
    /// Maximum delay between the due time of an operation and its start. The maximum applies to the
    /// 99th percentile of all delays, and to the delay of the last operation. If one of these
    /// delays is larger, the replay has fallen behind.
    pub lag_max_ns: u64,
}
