//! Early end of a phase. The driver reports each whole interval and asks whether the phase may end.
//! The driver only measures; the implementation of [`EndCondition`] judges whether the load is
//! steady.

use plimsoll_evidence::run::PhaseKind;

/// Decides when a phase ends.
pub trait EndCondition {
    /// Begins a phase. `sizes_bytes` contains the data size of each stream or database, and
    /// `written_bytes` the number of bytes written to it since conditioning began.
    fn begin(&mut self, phase: PhaseKind, sizes_bytes: &[u64], written_bytes: u64);

    /// Receives each complete interval of the current phase, once and in order. Returns true if the
    /// phase may end.
    fn add_interval(&mut self, operations: u64, written_bytes: u64) -> bool;

    /// Ends the phase. Returns true if the phase reached its goal, and a sentence that explains the
    /// result.
    fn end(&mut self) -> (bool, String);
}

/// Ends phases when their time is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedDuration;

impl EndCondition for FixedDuration {
    fn begin(&mut self, _phase: PhaseKind, _sizes_bytes: &[u64], _written_bytes: u64) {}

    fn add_interval(&mut self, _operations: u64, _written_bytes: u64) -> bool {
        false
    }

    fn end(&mut self) -> (bool, String) {
        (true, String::new())
    }
}
