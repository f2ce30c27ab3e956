//! Cuts of the target after the load of a run.

use serde::{Deserialize, Serialize};

use super::words::{CutKind, SyncMethod};

/// Durability test after the load of a run: it writes, cuts the target off, and checks each
/// acknowledged write. `Default` has the same defaults as the plan and the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityPhase {
    /// Command that cuts the target off: program and arguments. If it is empty, the operator cuts
    /// the target off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Command that makes the target available again; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restore: Vec<String>,
    /// True if the target may acknowledge writes after the cut has begun, but drops them.
    pub cut_drops_writes: bool,
    /// Part of the system that the cut interrupts.
    pub kind: CutKind,
    /// Number of cuts to make.
    pub cuts: u64,
    /// How each write is made durable before it is acknowledged.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache.
    pub direct: bool,
    /// Bytes under test.
    pub size_bytes: u64,
    /// Writing threads.
    pub threads: u32,
    /// Mean duration of the load before a cut.
    pub load_ns: u64,
    /// Time limit for each command, and for the target to become available again.
    pub timeout_ns: u64,
    /// Directory of the witness, as `DIR` or `HOST:DIR`; `None` for Plimsoll's state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
}

impl Default for DurabilityPhase {
    fn default() -> Self {
        Self {
            cut: Vec::new(),
            restore: Vec::new(),
            cut_drops_writes: false,
            kind: CutKind::Unstated,
            cuts: 59,
            sync: SyncMethod::Fdatasync,
            direct: false,
            size_bytes: 64 << 20,
            threads: 4,
            load_ns: 2_000_000_000,
            timeout_ns: 300_000_000_000,
            witness: None,
        }
    }
}
