//! Closed loops. A slot starts its next operation when its previous operation has completed, or a
//! think time later. Slots start operations in the order in which the slots became ready. If not
//! all ready slots can start at the same time, each slot still starts eventually.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Pacing, Start, places_of};

/// Closed loop without a think time.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    client_of: Box<[u32]>,
    ready: VecDeque<(u32, u64)>,
    stopped: bool,
}

impl ClosedLoop {
    /// Creates a loop in which each client keeps `depths[client]` operations in flight. All slots
    /// are ready at `start_ns`.
    #[must_use]
    pub fn new(depths: &[u32], start_ns: u64) -> Self {
        let client_of = places_of(depths).into_boxed_slice();
        let ready = (0..client_of.len() as u32).map(|place| (place, start_ns)).collect();
        Self { client_of, ready, stopped: false }
    }
}

impl Pacing for ClosedLoop {
    #[inline(always)]
    fn is_scheduled(&self) -> bool {
        false
    }

    #[inline(always)]
    fn next(&mut self, _now_ns: u64) -> Option<Start> {
        let (place, intended_ns) = self.ready.pop_front()?;
        Some(Start { place, client: self.client_of[place as usize], intended_ns, held: false })
    }

    #[inline(always)]
    fn due_ns(&self) -> Option<u64> {
        (!self.ready.is_empty()).then_some(0)
    }

    #[inline(always)]
    fn completed(&mut self, place: u32, now_ns: u64) {
        if !self.stopped {
            self.ready.push_back((place, now_ns));
        }
    }

    fn retire(&mut self, _: Start) {}

    fn stop(&mut self, _: u64) {
        self.stopped = true;
        self.ready.clear();
    }
}

/// Closed loop in which a think time passes between a completion and the next start.
#[derive(Clone, Debug)]
pub struct ThinkTimeLoop {
    client_of: Box<[u32]>,
    think_ns: Box<[u64]>,
    /// Slots, sorted by the time at which they become ready.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    stopped: bool,
}

impl ThinkTimeLoop {
    /// Creates a loop in which each client keeps `depths[client]` operations in flight and waits
    /// for the think time `think_ns[client]`.
    #[must_use]
    pub fn new(depths: &[u32], think_ns: &[u64], start_ns: u64) -> Self {
        let client_of = places_of(depths).into_boxed_slice();
        let think = |client: &u32| think_ns.get(*client as usize).copied().unwrap_or(0);
        let think_ns = client_of.iter().map(think).collect();
        let mut ready = BinaryHeap::with_capacity(client_of.len());
        ready.extend((0..client_of.len() as u32).map(|place| Reverse((start_ns, place))));
        Self { client_of, think_ns, ready, stopped: false }
    }
}

impl Pacing for ThinkTimeLoop {
    #[inline(always)]
    fn is_scheduled(&self) -> bool {
        true
    }

    #[inline]
    fn next(&mut self, now_ns: u64) -> Option<Start> {
        let Reverse((intended_ns, place)) = *self.ready.peek()?;
        if intended_ns > now_ns {
            return None;
        }
        self.ready.pop();
        Some(Start { place, client: self.client_of[place as usize], intended_ns, held: false })
    }

    #[inline]
    fn due_ns(&self) -> Option<u64> {
        self.ready.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    #[inline]
    fn completed(&mut self, place: u32, now_ns: u64) {
        if !self.stopped {
            self.ready.push(Reverse((now_ns + self.think_ns[place as usize], place)));
        }
    }

    fn retire(&mut self, _: Start) {}

    fn stop(&mut self, _: u64) {
        self.stopped = true;
        self.ready.clear();
    }
}
