//! Ends phases before their planned end. The driver passes each complete interval to an
//! [`EndCondition`], which decides whether the phase may end. The driver only measures. The
//! implementation of [`EndCondition`] judges whether the load is steady.

use plimsoll_evidence::run::PhaseKind;

/// Decides when a phase ends.
pub trait EndCondition {
    /// Called when a phase begins. `sizes_bytes` contains the data size of each stream or database.
    /// `written_bytes` contains the number of bytes that were written to each of them since
    /// conditioning began.
    fn begin(&mut self, phase: PhaseKind, sizes_bytes: &[u64], written_bytes: u64);

    /// Called once for each complete interval of the current phase, in order. Returns true if the
    /// phase may end.
    fn add_interval(&mut self, operations: u64, written_bytes: u64) -> bool;

    /// Called when the phase ends. Returns true if the phase reached its goal, and a sentence that
    /// explains the result.
    fn end(&mut self) -> (bool, String);
}

/// End condition that ends a phase only when its planned time is over.
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
