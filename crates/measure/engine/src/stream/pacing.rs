//! Determines the start times of operations for a group of clients.
//!
//! The driver calls [`Pacing::next`] repeatedly to get operations that are due, and
//! [`Pacing::completed`] when a slot becomes free. The group may have a fixed number of operations
//! in flight. Each of them has a *slot* (`place`). The driver identifies an operation by the number
//! of its slot.

mod any_pacing;
mod batch_barrier;
mod closed_loop;
mod gated;
mod open_loop;
mod rate_cap;

pub use any_pacing::AnyPacing;
pub use batch_barrier::BatchBarrier;
pub use closed_loop::{ClosedLoop, ThinkTimeLoop};
pub use gated::Gated;
pub use open_loop::OpenLoop;
pub use rate_cap::RateCap;

/// Start of an operation that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Slot in which the operation runs.
    pub place: u32,
    /// Client that issues the operation.
    pub client: u32,
    /// Intended start time. The latency is measured from this time.
    pub intended_ns: u64,
    /// True if no slot was free at the intended start time, so that the operation had to wait.
    pub held: bool,
}

/// Pacing of a group of clients. See the module documentation.
pub trait Pacing {
    /// Returns true if a schedule determines the start times, so that a start can be late. The
    /// driver calls this only once.
    fn is_scheduled(&self) -> bool;

    /// Returns the next operation that is due at `now_ns`.
    fn next(&mut self, now_ns: u64) -> Option<Start>;

    /// Returns the time at which the next operation is due. Returns `None` if it can only start
    /// after a completion. If the time is in the past, the operation is due now.
    fn due_ns(&self) -> Option<u64>;

    /// Computes later start times in advance. The driver calls this while no operation is due.
    fn prepare(&mut self) {}

    /// Called when the operation in the slot `place` has completed.
    fn completed(&mut self, place: u32, now_ns: u64);

    /// Called when the client to which this start belongs has no more operations. The slot is then
    /// not used again.
    fn retire(&mut self, start: Start);

    /// Prevents starts whose intended time is `stop_ns` or later. Open loops still return
    /// operations whose intended time is earlier.
    fn stop(&mut self, stop_ns: u64);

    /// Calls `each` for each operation that was due before the stop and never started. The
    /// arguments are the client and the intended start time. The driver calls this function once,
    /// at the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        let _ = each;
    }
}

/// Returns the number of the client that owns each slot. Each client owns as many consecutive slots
/// as its depth in `depths`.
#[must_use]
pub fn places_of(depths: &[u32]) -> Vec<u32> {
    let each = depths.iter().enumerate();
    each.flat_map(|(client, depth)| std::iter::repeat_n(client as u32, *depth as usize)).collect()
}

#[cfg(test)]
mod tests;
