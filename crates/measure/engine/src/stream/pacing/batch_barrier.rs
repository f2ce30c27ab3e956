//! Closed loop with a barrier. A client starts its next batch only after all operations of its
//! previous batch have completed and its think time has passed.

use std::collections::VecDeque;

use super::{Pacing, Start, places_of};

/// Closed loop in which each client issues whole batches. See the module documentation.
#[derive(Clone, Debug)]
pub struct BatchBarrier {
    client_of: Box<[u32]>,
    /// For each client: its first slot and its number of slots.
    places: Box<[(u32, u32)]>,
    outstanding: Box<[u32]>,
    /// Pause after each batch. It is the same for all clients, so slots become ready in the order
    /// of this queue.
    think_ns: u64,
    ready: VecDeque<(u32, u64)>,
    stopped: bool,
}

impl BatchBarrier {
    /// Creates clients that start `batches[client]` operations at the same time, `think_ns` after
    /// their previous batch. All clients are ready to start at `start_ns`.
    #[must_use]
    pub fn new(batches: &[u32], think_ns: u64, start_ns: u64) -> Self {
        let client_of = places_of(batches).into_boxed_slice();
        let mut first = 0;
        let places = batches.iter().map(|count| {
            let range = (first, *count);
            first += count;
            range
        });
        let ready = (0..client_of.len() as u32).map(|place| (place, start_ns)).collect();
        let places = places.collect();
        Self { client_of, places, outstanding: batches.into(), think_ns, ready, stopped: false }
    }

    fn finish_one(&mut self, client: u32, now_ns: u64) {
        let client = client as usize;
        self.outstanding[client] -= 1;
        if self.outstanding[client] == 0 && !self.stopped {
            let (first, count) = self.places[client];
            self.outstanding[client] = count;
            let ready_ns = now_ns.saturating_add(self.think_ns);
            self.ready.extend((first..first + count).map(|place| (place, ready_ns)));
        }
    }
}

impl Pacing for BatchBarrier {
    #[inline(always)]
    fn is_scheduled(&self) -> bool {
        self.think_ns > 0
    }

    #[inline]
    fn next(&mut self, now_ns: u64) -> Option<Start> {
        let (place, intended_ns) = *self.ready.front()?;
        if self.think_ns > 0 && intended_ns > now_ns {
            return None;
        }
        self.ready.pop_front();
        Some(Start { place, client: self.client_of[place as usize], intended_ns, held: false })
    }

    #[inline]
    fn due_ns(&self) -> Option<u64> {
        let (_, ready_ns) = self.ready.front()?;
        Some(if self.think_ns > 0 { *ready_ns } else { 0 })
    }

    #[inline]
    fn completed(&mut self, place: u32, now_ns: u64) {
        self.finish_one(self.client_of[place as usize], now_ns);
    }

    fn retire(&mut self, start: Start) {
        // The driver later retires the remaining operations of the client's batch. The batch
        // therefore never completes, and the client cannot start again.
        self.places[start.client as usize].1 = 0;
    }

    fn stop(&mut self, _: u64) {
        self.stopped = true;
        self.ready.clear();
    }
}
