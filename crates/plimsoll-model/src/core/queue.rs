//! The event queue: what happens next, in integer nanoseconds of virtual time.
//!
//! A 4-ary implicit heap of packed 128-bit keys (D. B. Johnson, "Priority queues with update and
//! finding minimum spanning trees", IPL 4, 1975, for d-ary heaps): 56 bits of time, 40 bits of
//! sequence number, 32 bits of payload. One comparison orders by time and then by the order of
//! insertion, so ties are broken the same way on every machine. Four children share one cache line
//! of 64 bytes, which is why the arity is 4 and not 2.

/// The latest time an event can have: 2^56 - 1 ns, about 833 days of virtual time.
pub const TIME_NS_MAX: u64 = (1 << 56) - 1;

const SEQUENCE_BITS: u32 = 40;
const PAYLOAD_BITS: u32 = 32;

/// A queue of events, each a time and a 32-bit payload.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: Vec<u128>,
    sequence: u64,
    /// The root was taken and nothing put in its place yet. Most events cause exactly one other, so
    /// the next push usually fills the root and the queue is sifted once, not twice.
    hole: bool,
}

impl EventQueue {
    /// An empty queue with room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { heap: Vec::with_capacity(capacity), sequence: 0, hole: false }
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    /// True if no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. Times beyond [`TIME_NS_MAX`] count as that time.
    #[inline]
    pub fn push(&mut self, time_ns: u64, payload: u32) {
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        let time = u128::from(time_ns.min(TIME_NS_MAX));
        let key = (time << (SEQUENCE_BITS + PAYLOAD_BITS))
            | (u128::from(self.sequence) << PAYLOAD_BITS)
            | u128::from(payload);
        self.sequence += 1;
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.heap.push(key);
            self.sift_up(self.heap.len() - 1, key);
        }
    }

    /// Takes the earliest event; of those at one time, the one that was pushed first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        if self.hole {
            self.fill();
        }
        let top = *self.heap.first()?;
        self.hole = true;
        Some(((top >> (SEQUENCE_BITS + PAYLOAD_BITS)) as u64, top as u32))
    }

    /// When the earliest event is due.
    pub fn next_ns(&mut self) -> Option<u64> {
        if self.hole {
            self.fill();
        }
        self.heap.first().map(|top| (top >> (SEQUENCE_BITS + PAYLOAD_BITS)) as u64)
    }

    /// Forgets every event.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.sequence = 0;
        self.hole = false;
    }

    /// Closes the hole at the root with the last element.
    #[inline]
    fn fill(&mut self) {
        self.hole = false;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, key: u128) {
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    /// Puts `key` in the place of the root and moves it down to where it belongs.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let len = self.heap.len();
        let heap = &mut self.heap[..len];
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            if first + 4 <= len {
                let (a, b) = if heap[first + 1] < heap[first] {
                    (first + 1, heap[first + 1])
                } else {
                    (first, heap[first])
                };
                let (c, d) = if heap[first + 3] < heap[first + 2] {
                    (first + 3, heap[first + 3])
                } else {
                    (first + 2, heap[first + 2])
                };
                let (best, value) = if d < b { (c, d) } else { (a, b) };
                if key <= value {
                    break;
                }
                heap[at] = value;
                at = best;
                continue;
            }
            let Some(best) = (first..len).min_by_key(|&child| heap[child]) else { break };
            if key <= heap[best] {
                break;
            }
            heap[at] = heap[best];
            at = best;
        }
        heap[at] = key;
    }

    /// Gives the waiting events new sequence numbers in their present order. Needed once in 2^40
    /// events.
    #[cold]
    fn renumber(&mut self) {
        if self.hole {
            self.fill();
        }
        self.heap.sort_unstable();
        let keep = (u128::from(u64::MAX >> (64 - SEQUENCE_BITS))) << PAYLOAD_BITS;
        for (sequence, key) in self.heap.iter_mut().enumerate() {
            *key = (*key & !keep) | ((sequence as u128) << PAYLOAD_BITS);
        }
        self.sequence = self.heap.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_leave_in_the_order_they_came() {
        let mut queue = EventQueue::default();
        for payload in 0..100 {
            queue.push(7, payload);
        }
        queue.push(3, 1000);
        assert_eq!(queue.pop(), Some((3, 1000)));
        for payload in 0..100 {
            assert_eq!(queue.pop(), Some((7, payload)));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn renumbering_keeps_the_order() {
        let mut queue = EventQueue::default();
        for payload in 0..50 {
            queue.push(u64::from(payload % 5), payload);
        }
        queue.sequence = 1 << SEQUENCE_BITS;
        queue.push(2, 99);
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|(_, p)| p).collect();
        let mut expected: Vec<u32> = (0..50).collect();
        expected.push(99);
        expected.sort_by_key(|&p| (if p == 99 { 2 } else { p % 5 }, if p == 99 { 50 } else { p }));
        assert_eq!(order, expected);
    }

    proptest! {
        #[test]
        fn leaves_in_order_of_time_then_insertion(times in prop::collection::vec(0u64..50, 0..400)) {
            let mut queue = EventQueue::default();
            let mut expected = Vec::new();
            let mut got = Vec::new();
            for (i, &t) in times.iter().enumerate() {
                queue.push(t, i as u32);
                expected.push((t, i as u32));
                // Interleave some removals: the heap must stay right while it shrinks and grows.
                if t % 7 == 0 && let Some(e) = queue.pop() {
                    let least = expected.iter().copied().min().unwrap();
                    prop_assert_eq!(e, least);
                    expected.retain(|&x| x != least);
                }
            }
            while let Some(e) = queue.pop() {
                got.push(e);
            }
            expected.sort_unstable();
            prop_assert_eq!(got, expected);
        }
    }
}
