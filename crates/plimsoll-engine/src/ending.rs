//! May a phase end before its time is up? The driver tells each whole interval and is told: it measures,
//! and somebody else judges what is steady.

use plimsoll_evidence::run::PhaseKind;

/// What decides when a phase ends.
pub trait Ending {
    /// A phase begins. `sizes_bytes` is the data of each stream or database, `written_bytes` what was
    /// written to it since conditioning began.
    fn begin(&mut self, phase: PhaseKind, sizes_bytes: &[u64], written_bytes: u64);

    /// Takes a whole interval of the phase that is on, each once and in order. True: it may end.
    fn take(&mut self, operations: u64, written_bytes: u64) -> bool;

    /// The phase has ended: whether it reached what it waited for, and what is to be said of that.
    fn end(&mut self) -> (bool, String);
}

/// Phases end when their time is up.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnTime;

impl Ending for OnTime {
    fn begin(&mut self, _phase: PhaseKind, _sizes_bytes: &[u64], _written_bytes: u64) {}

    fn take(&mut self, _operations: u64, _written_bytes: u64) -> bool {
        false
    }

    fn end(&mut self) -> (bool, String) {
        (true, String::new())
    }
}
