//! Open loop. Operations arrive according to their schedule, even if earlier operations have not
//! completed.
//!
//! If every slot is in use, an arrival waits, but its intended start time does not change. The
//! latencies therefore include every wait that the target causes. (Gil Tene, "How NOT to Measure
//! Latency", describes tools that omit these waits.) Arrivals whose intended time is before the
//! stop still start after the stop.

use super::{Pacing, Start};

#[derive(Clone, Debug)]
struct Client<A> {
    arrivals: A,
    client: u32,
    next_ns: u64,
    /// Arrival that follows the arrival at `next_ns`; `None` if the thread has not computed it yet.
    after_ns: Option<u64>,
}

impl<A: Iterator<Item = u64>> Client<A> {
    #[inline]
    fn next_arrival_ns(&mut self, start_ns: u64) -> u64 {
        self.arrivals.next().map_or(u64::MAX, |next| start_ns.saturating_add(next))
    }

    #[inline]
    fn advance(&mut self, start_ns: u64) {
        self.next_ns = match self.after_ns.take() {
            Some(after_ns) => after_ns,
            None => self.next_arrival_ns(start_ns),
        };
    }
}

/// Open loop. See the module documentation.
#[derive(Clone, Debug)]
pub struct OpenLoop<A> {
    /// Clients in a binary heap, which is sorted by `next_ns`. The first client has the earliest
    /// arrival.
    clients: Vec<Client<A>>,
    free: Vec<u32>,
    start_ns: u64,
    stop_ns: u64,
    /// Time at which the queue was last full. The full queue delayed arrivals that were due before
    /// this time.
    full_until_ns: u64,
}

impl<A: Iterator<Item = u64>> OpenLoop<A> {
    /// Creates clients that share `places` slots. `arrivals` contains the arrival times of each
    /// client, in nanoseconds since `start_ns`.
    #[must_use]
    pub fn new(arrivals: Vec<A>, places: u32, start_ns: u64) -> Self {
        let mut clients = Vec::with_capacity(arrivals.len());
        for (client, arrivals) in arrivals.into_iter().enumerate() {
            let client = client as u32;
            let mut client = Client { arrivals, client, next_ns: 0, after_ns: None };
            client.advance(start_ns);
            clients.push(client);
        }
        clients.sort_by_key(|client| client.next_ns);
        let free = (0..places).rev().collect();
        Self { clients, free, start_ns, stop_ns: u64::MAX, full_until_ns: 0 }
    }

    /// Restores the order of the heap after the arrival time of the first client has increased.
    #[inline]
    fn restore_heap(&mut self) {
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let Some(first) = self.clients.get(left) else { return };
            let second = self.clients.get(left + 1);
            let least =
                if second.is_some_and(|s| s.next_ns < first.next_ns) { left + 1 } else { left };
            if self.clients[at].next_ns <= self.clients[least].next_ns {
                return;
            }
            self.clients.swap(at, least);
            at = least;
        }
    }
}

impl<A: Iterator<Item = u64>> Pacing for OpenLoop<A> {
    #[inline(always)]
    fn is_scheduled(&self) -> bool {
        true
    }

    #[inline]
    fn next(&mut self, now_ns: u64) -> Option<Start> {
        let first = self.clients.first_mut()?;
        let intended_ns = first.next_ns;
        if intended_ns > now_ns || intended_ns >= self.stop_ns {
            return None;
        }
        let place = self.free.pop()?;
        let client = first.client;
        first.advance(self.start_ns);
        self.restore_heap();
        let held = intended_ns < self.full_until_ns;
        Some(Start { place, client, intended_ns, held })
    }

    #[inline]
    fn due_ns(&self) -> Option<u64> {
        let next_ns = self.clients.first()?.next_ns;
        (!self.free.is_empty() && next_ns < self.stop_ns).then_some(next_ns)
    }

    #[inline]
    fn completed(&mut self, place: u32, now_ns: u64) {
        if self.free.is_empty() {
            self.full_until_ns = now_ns;
        }
        self.free.push(place);
    }

    #[inline]
    fn prepare(&mut self) {
        if let Some(first) = self.clients.first_mut()
            && first.after_ns.is_none()
        {
            first.after_ns = Some(first.next_arrival_ns(self.start_ns));
        }
    }

    fn retire(&mut self, start: Start) {
        self.free.push(start.place);
        for client in &mut self.clients {
            if client.client == start.client {
                (client.next_ns, client.after_ns) = (u64::MAX, Some(u64::MAX));
            }
        }
        self.clients.sort_by_key(|client| client.next_ns);
    }

    fn stop(&mut self, stop_ns: u64) {
        self.stop_ns = self.stop_ns.min(stop_ns);
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        for client in &mut self.clients {
            while client.next_ns < self.stop_ns {
                each(client.client, client.next_ns);
                client.advance(self.start_ns);
            }
        }
    }
}
