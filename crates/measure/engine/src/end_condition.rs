//! Early end of a phase. The driver reports each whole interval and asks whether the phase may end.
//! It only measures; the implementation judges whether the load is steady.

use plimsoll_evidence::run::PhaseKind;

/// Decides when a phase ends.
pub trait EndCondition {
    /// Begins a phase. `sizes_bytes` is the data of each stream or database, `written_bytes` the
    /// bytes written to it since conditioning began.
    fn begin(&mut self, phase: PhaseKind, sizes_bytes: &[u64], written_bytes: u64);

    /// Receives each whole interval of the current phase, once and in order. Returns true if the
    /// phase may end.
    fn add_interval(&mut self, operations: u64, written_bytes: u64) -> bool;

    /// Ends the phase. Returns true if the phase reached its goal, and a sentence about that.
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
