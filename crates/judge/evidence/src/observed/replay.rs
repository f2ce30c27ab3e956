//! Replay of a trace: the trace, its mapping to the target, skipped operations, and delays after
//! the recorded times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Lag;

/// Trace file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Path.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Name of the format, as shown to users.
    pub format: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Number of lines.
    pub lines: u64,
    /// Number of lines that could not be parsed.
    pub unreadable_lines: u64,
    /// Event type that represents an operation: `Q`, `D` or `C`. Absent if the trace does not
    /// record several events for each operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The first 32 devices or files, with their reads and writes.
    pub volumes: BTreeMap<String, u64>,
    /// Number of devices or files.
    pub volumes_count: u64,
    /// Number of skipped records for each reason.
    pub left_out: BTreeMap<String, u64>,
    /// Number of operations that follow an operation with a later time in the trace.
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
    /// Total size of all 1 MiB regions of the trace that its operations access.
    pub touched_bytes: u64,
    /// Total size of all 1 MiB regions of the target that the mapped operations access. Absent in
    /// bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_bytes: Option<u64>,
    /// Operations that were moved to another offset.
    pub moved: u64,
    /// Operations whose target offset is shared with other offsets of the trace.
    pub folded: u64,
    /// Operations whose offset or size was rounded to the block size.
    pub rounded: u64,
    /// Operations after the end of the target, which were skipped.
    pub outside: u64,
}

/// Operations that are due in the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDue {
    /// Reads and writes.
    pub operations: u64,
    /// Reads.
    pub reads: u64,
    /// Flushes. They start at their recorded times, like reads and writes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub flushes: u64,
    /// Bytes of reads and writes.
    pub size_bytes: u64,
    /// Time from the first operation to the last.
    pub span_ns: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Operations that were submitted in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBegun {
    /// Reads, writes and flushes submitted to the target.
    pub operations: u64,
    /// Operations that were due but never submitted.
    pub never: u64,
    /// Number of submitting threads. A single thread submits in the order of the trace.
    pub threads: u32,
    /// Time from the first operation's due time to the last submission. If [`never`](Self::never)
    /// is not 0, it ends at the end of the run.
    pub took_ns: Option<u64>,
    /// Delay of submissions after their due times, whatever the cause; `None` if no operation had a
    /// due time.
    pub lag: Option<Lag>,
    /// Delay of the last submission. If some operations were never submitted: the time that the
    /// first of these operations had waited at the end of the run.
    pub lag_end_ns: Option<u64>,
}

/// Replayed trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The trace.
    pub trace: TraceFile,
    /// Number of reads and writes in the trace.
    pub operations: u64,
    /// Time from the first operation to the last.
    pub span_ns: u64,
    /// Speed relative to the recording; `None` for a replay as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Mapping to the target.
    pub mapping: TraceMapping,
    /// Operations due.
    pub due: TraceDue,
    /// Submitted operations; `None` if the run did not reach the measured phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<TraceBegun>,
}
