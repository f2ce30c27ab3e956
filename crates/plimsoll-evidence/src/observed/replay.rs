//! A trace that was replayed: which one, how it was laid onto the target, what was left out, and how far behind its times
//! its operations began.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Lag;

/// The trace's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Its path.
    pub file: String,
    /// Its SHA-256.
    pub sha256: String,
    /// Its form, for people.
    pub format: String,
    /// Its bytes.
    pub size_bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// Lines that could not be read.
    pub unreadable_lines: u64,
    /// Which events stand for the operations, where it has several for each: `Q`, `D` or `C`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Its devices or files, the first 32, with their reads and writes.
    pub volumes: BTreeMap<String, u64>,
    /// How many devices or files it has.
    pub volumes_count: u64,
    /// What was left out, by name.
    pub left_out: BTreeMap<String, u64>,
    /// Operations that it has written down after a later one.
    pub out_of_order: u64,
}

/// How its operations were laid onto the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMapping {
    /// The rule that was applied.
    pub rule: String,
    /// Bytes of the target.
    pub target_bytes: u64,
    /// Bytes of the trace's address space.
    pub extent_bytes: u64,
    /// Bytes of the pieces of 1 MiB that it touches.
    pub touched_bytes: u64,
    /// Bytes of the 1 MiB pieces of the target that its operations reach. Absent in bundles of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_bytes: Option<u64>,
    /// Operations that went to another place than their own.
    pub moved: u64,
    /// Operations whose place other places of the trace fall on too.
    pub folded: u64,
    /// Operations whose offset or size was rounded to the boundary.
    pub rounded: u64,
    /// Operations left out, as they lie beyond the target.
    pub outside: u64,
}

/// What of the trace was due in the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDue {
    /// Reads and writes.
    pub operations: u64,
    /// Reads.
    pub reads: u64,
    /// Flushes, which are begun at their times like reads and writes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub flushes: u64,
    /// Bytes of reads and writes.
    pub size_bytes: u64,
    /// From the first one to the last.
    pub span_ns: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What was begun of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBegun {
    /// Reads, writes and flushes that were handed to the target.
    pub operations: u64,
    /// How many were never handed to it although they were due.
    pub never: u64,
    /// How many threads gave them: one gives them in the order of the trace.
    pub threads: u32,
    /// From the first one's time to when the last one was begun; with [`never`](Self::never) to the end of the run.
    pub took_ns: Option<u64>,
    /// How long after their times operations were begun, whoever's fault it was; `None` where they had none.
    pub lag: Option<Lag>,
    /// The same of the last one; where some never began, how long the first of them had waited at the end of the run.
    pub lag_end_ns: Option<u64>,
}

/// A trace that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The trace.
    pub trace: TraceFile,
    /// Reads and writes of it.
    pub operations: u64,
    /// From its first to its last one.
    pub span_ns: u64,
    /// How many times as fast as recorded; `None`: as fast as the target went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// How it was laid onto the target.
    pub mapping: TraceMapping,
    /// What was due of it.
    pub due: TraceDue,
    /// What was begun of it; `None`: the measured phase was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<TraceBegun>,
}
