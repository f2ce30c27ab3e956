//! Replay of a trace: the trace itself, its mapping to the target, the skipped operations, and the
//! delays with which operations started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Lag;

/// Trace file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Path.
    pub file: String,
    /// SHA-256 of the trace file.
    pub sha256: String,
    /// Name of the trace's format, as shown to users.
    pub format: String,
    /// Size of the trace file in bytes.
    pub size_bytes: u64,
    /// Number of lines in the trace file.
    pub lines: u64,
    /// Number of lines that could not be parsed.
    pub unreadable_lines: u64,
    /// Type of the event whose time is used as the time of the operation: `Q`, `D` or `C`. Absent
    /// if the trace contains only one event for each operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The first 32 devices or files in the trace. Each entry also contains the number of its reads
    /// and writes.
    pub volumes: BTreeMap<String, u64>,
    /// Number of devices or files in the trace.
    pub volumes_count: u64,
    /// For each reason: the number of records that were skipped for this reason.
    pub left_out: BTreeMap<String, u64>,
    /// Number of operations that are out of order: the trace contains an operation with a later
    /// time before them.
    pub out_of_order: u64,
}

/// Mapping of the trace's addresses to the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMapping {
    /// Mapping rule.
    pub rule: String,
    /// Size of the target in bytes.
    pub target_bytes: u64,
    /// Size of the trace's address space in bytes.
    pub extent_bytes: u64,
    /// Total size of the regions that the operations access in the trace. A region has 1 MiB.
    pub touched_bytes: u64,
    /// Total size of the regions that the mapped operations access on the target. A region has 1
    /// MiB. Absent in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_bytes: Option<u64>,
    /// Number of operations whose offset on the target differs from their offset in the trace.
    pub moved: u64,
    /// Number of operations whose offset on the target is shared by several offsets of the trace.
    pub folded: u64,
    /// Number of operations whose offset or size was rounded to the block size.
    pub rounded: u64,
    /// Number of operations that were skipped because their offset is beyond the end of the target.
    pub outside: u64,
}

/// Operations that were due in the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDue {
    /// Number of reads and writes that were due.
    pub operations: u64,
    /// Reads.
    pub reads: u64,
    /// Number of flushes. Like reads and writes, flushes start at their recorded times.
    #[serde(default, skip_serializing_if = "is_none")]
    pub flushes: u64,
    /// Number of bytes that these reads and writes transfer.
    pub size_bytes: u64,
    /// Time from the first operation to the last operation.
    pub span_ns: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Operations that were submitted in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBegun {
    /// Number of reads, writes and flushes that were submitted to the target.
    pub operations: u64,
    /// Number of operations that were due but never submitted.
    pub never: u64,
    /// Number of submitting threads. A single thread submits in the order of the trace.
    pub threads: u32,
    /// Time from the moment when the first operation was due to the last submission. If
    /// [`never`](Self::never) is not 0, the time ends at the end of the run.
    pub took_ns: Option<u64>,
    /// Delays between the times when operations were due and the times when they were submitted.
    /// Delays of all causes are included. `None` if no operation had a due time.
    pub lag: Option<Lag>,
    /// Delay of the operation that was submitted last. If some operations were never submitted, it
    /// is the time for which the first of these operations had waited when the run ended.
    pub lag_end_ns: Option<u64>,
}

/// Replayed trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The trace.
    pub trace: TraceFile,
    /// Number of reads and writes in the trace.
    pub operations: u64,
    /// Time from the first operation to the last operation.
    pub span_ns: u64,
    /// Replay speed as a multiple of the recorded speed; `None` if the trace is replayed as fast as
    /// possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Mapping of the trace's addresses to the target.
    pub mapping: TraceMapping,
    /// Operations due.
    pub due: TraceDue,
    /// Operations that were submitted in the measured phase; `None` if the run did not reach the
    /// measured phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<TraceBegun>,
}
