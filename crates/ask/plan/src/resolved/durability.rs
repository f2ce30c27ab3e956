//! The durability test that follows the load of a run.

use serde::{Deserialize, Serialize};

use super::words::{CutKind, SyncMethod};

/// Durability test that follows the load of a run. It writes, interrupts the target (a cut), and
/// then checks each acknowledged write. `Default` returns the defaults that plans and the command
/// line use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityPhase {
    /// Program and arguments of the command that interrupts the target. If the list is empty, the
    /// operator interrupts the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Program and arguments of the command that makes the target available again. The list is
    /// empty if there is no such command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restore: Vec<String>,
    /// True if the target may still acknowledge writes after the start of its interruption (the
    /// cut) although it loses these writes.
    pub cut_drops_writes: bool,
    /// Part of the system that the test interrupts.
    pub kind: CutKind,
    /// Number of times that the test interrupts the target.
    pub cuts: u64,
    /// Method that makes each write durable before it counts as acknowledged.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache.
    pub direct: bool,
    /// Total size of the blocks that the test writes, in bytes.
    pub size_bytes: u64,
    /// Writing threads.
    pub threads: u32,
    /// Mean time that the threads spend writing before each interruption of the target.
    pub load_ns: u64,
    /// Time limit for each command. It is also the time limit within which the target must become
    /// available again.
    pub timeout_ns: u64,
    /// Directory for the list of acknowledged writes (the witness), as `DIR` or `HOST:DIR`. `None`
    /// means Plimsoll's state directory.
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
