//! When the next operation of a group of clients starts.
//!
//! The driver asks [`Pacing::next`] for starts that are due and tells [`Pacing::completed`] when a place
//! has become free. A *place* is one of the operations that may be in flight; its number is the
//! operation's everywhere in the driver.

mod any;
mod barrier;
mod capped;
mod closed;
mod open;

pub use any::AnyPacing;
pub use barrier::Barrier;
pub use capped::Capped;
pub use closed::{Closed, Thinking};
pub use open::Open;

/// A start that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The place it takes.
    pub place: u32,
    /// The client.
    pub client: u32,
    /// When it should have started. Latency counts from here.
    pub intended_ns: u64,
    /// Whether it waited for a free place.
    pub held: bool,
}

/// See the module.
pub trait Pacing {
    /// Whether starts follow a schedule, so that being late means something. Asked once.
    fn is_scheduled(&self) -> bool;

    /// The next start that is due at `now_ns`.
    fn next(&mut self, now_ns: u64) -> Option<Start>;

    /// When the next start is due; `None` where only a completion can make one. Times in the past are
    /// due now.
    fn due_ns(&self) -> Option<u64>;

    /// Nothing is due for a moment: work out now what a start would have to wait for.
    fn prepare(&mut self) {}

    /// The operation in `place` has completed.
    fn completed(&mut self, place: u32, now_ns: u64);

    /// The client of this start has ended: its place is not used again.
    fn retire(&mut self, start: Start);

    /// No start from `stop_ns` on: open loops still give those that were intended before it.
    fn stop(&mut self, stop_ns: u64);

    /// Tells client and intended time of each start that was due before the stop and was never given;
    /// asked once, at the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        let _ = each;
    }
}

/// The clients that places belong to: `depth` places each, in order.
#[must_use]
pub fn places_of(depths: &[u32]) -> Vec<u32> {
    let each = depths.iter().enumerate();
    each.flat_map(|(client, depth)| std::iter::repeat_n(client as u32, *depth as usize)).collect()
}

#[cfg(test)]
mod tests;
