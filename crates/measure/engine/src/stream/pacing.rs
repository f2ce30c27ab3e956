//! Start times of the operations of a group of clients.
//!
//! The driver polls [`Pacing::next`] for due starts and calls [`Pacing::completed`] when a slot
//! becomes free. A *slot* (`place`) is one of the operations that may be in flight; its number
//! identifies the operation everywhere in the driver.

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

/// A due start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Slot of the operation.
    pub place: u32,
    /// Client of the operation.
    pub client: u32,
    /// Intended start time. The latency is measured from this time.
    pub intended_ns: u64,
    /// True if no slot was free at the intended start time.
    pub held: bool,
}

/// Pacing of a group. See the module documentation.
pub trait Pacing {
    /// Returns true if starts follow a schedule, so that a start can be late. Called once.
    fn is_scheduled(&self) -> bool;

    /// Returns the next start that is due at `now_ns`.
    fn next(&mut self, now_ns: u64) -> Option<Start>;

    /// Returns the time at which the next start is due, or `None` if the start depends on a
    /// completion. If the time is in the past, the start is due now.
    fn due_ns(&self) -> Option<u64>;

    /// Computes later starts in advance. Called while no start is due.
    fn prepare(&mut self) {}

    /// Reports that the operation in `place` has completed.
    fn completed(&mut self, place: u32, now_ns: u64);

    /// Reports that the client to which this start belongs has ended. The slot is then not used
    /// again.
    fn retire(&mut self, start: Start);

    /// Prevents starts that are intended at or after `stop_ns`. Open loops still return operations
    /// that were intended before this time.
    fn stop(&mut self, stop_ns: u64);

    /// Calls `each` with client and intended time of each operation that was due before the stop
    /// and never started. Called once, at the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        let _ = each;
    }
}

/// Returns the client of each slot. Each client has `depth` consecutive slots.
#[must_use]
pub fn places_of(depths: &[u32]) -> Vec<u32> {
    let each = depths.iter().enumerate();
    each.flat_map(|(client, depth)| std::iter::repeat_n(client as u32, *depth as usize)).collect()
}

#[cfg(test)]
mod tests;
