//! The event queue, in integer nanoseconds of virtual time.
//!
//! A 4-ary implicit heap of packed 128-bit keys (D. B. Johnson, "Priority queues with update and
//! finding minimum spanning trees", IPL 4, 1975, for d-ary heaps): 56 bits of time, 40 bits of
//! sequence number, 32 bits of payload. One comparison orders events by time, and events at the
//! same time by insertion. The order is therefore the same on every machine. Four children share
//! one cache line of 64 bytes, which is why the arity is 4 and not 2.

/// Latest time of an event: 2^56 - 1 ns, about 833 days of virtual time.
pub const TIME_NS_MAX: u64 = (1 << 56) - 1;

const SEQUENCE_BITS: u32 = 40;
const PAYLOAD_BITS: u32 = 32;

/// Keys of four sibling nodes of the heap, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u128; 4]);

/// Key of a slot that has no event. This key sorts after all events.
const EMPTY: u128 = u128::MAX;

/// A queue of events. An event has a time and a 32-bit payload.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Keys of the heap, four in each cache line. The root is the last key of the first line. The
    /// children of node `n` are in line `n + 1`.
    lines: Vec<Line>,
    len: usize,
    sequence: u64,
    /// True if the root was removed and not yet replaced. Most events cause exactly one new event,
    /// so the next push usually fills the root. The heap is then sifted once, not once for the
    /// removal and once for the push.
    hole: bool,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::with_capacity(4)
    }
}

impl EventQueue {
    /// Creates an empty queue with space for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut lines = Vec::with_capacity(capacity / 4 + 2);
        lines.push(Line([EMPTY; 4]));
        Self { lines, len: 0, sequence: 0, hole: false }
    }

    pub fn len(&self) -> usize {
        self.len - usize::from(self.hole)
    }

    /// Returns true if there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. A time after [`TIME_NS_MAX`] is replaced by that maximum.
    #[inline(always)]
    pub fn push(&mut self, time_ns: u64, payload: u32) {
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        // The upper half of the key contains the time and the upper bits of the sequence number.
        // The lower half contains the remaining bits of the sequence number, and the payload.
        let high = (time_ns.min(TIME_NS_MAX) << (SEQUENCE_BITS - 32)) | (self.sequence >> 32);
        let low = (self.sequence << PAYLOAD_BITS) | u64::from(payload);
        let key = (u128::from(high) << 64) | u128::from(low);
        self.sequence += 1;
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.len += 1;
            if (self.len + 2) / 4 >= self.lines.len() {
                self.lines.push(Line([EMPTY; 4]));
            }
            self.sift_up(self.len - 1, key);
        }
    }

    /// Removes the earliest event. If several events have the same time, removes the event that was
    /// pushed first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        if self.hole {
            self.fill();
        }
        let top = self.lines[0].0[3];
        if self.len == 0 {
            return None;
        }
        self.hole = true;
        Some(((top >> (SEQUENCE_BITS + PAYLOAD_BITS)) as u64, top as u32))
    }

    /// Returns the time of the earliest event.
    pub fn next_ns(&mut self) -> Option<u64> {
        if self.hole {
            self.fill();
        }
        let top = self.lines[0].0[3];
        (self.len > 0).then_some((top >> (SEQUENCE_BITS + PAYLOAD_BITS)) as u64)
    }

    /// Removes every event.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.lines.push(Line([EMPTY; 4]));
        (self.len, self.sequence, self.hole) = (0, 0, false);
    }

    /// Returns the key of a node.
    #[inline]
    fn at(&mut self, node: usize) -> &mut u128 {
        &mut self.lines[node.div_ceil(4)].0[(node + 3) % 4]
    }

    /// Moves the last element to the empty root.
    #[inline]
    fn fill(&mut self) {
        self.hole = false;
        self.len -= 1;
        let last = std::mem::replace(self.at(self.len), EMPTY);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut node: usize, key: u128) {
        while node > 0 {
            let parent = (node - 1) / 4;
            let above = *self.at(parent);
            if above <= key {
                break;
            }
            *self.at(node) = above;
            node = parent;
        }
        *self.at(node) = key;
    }

    /// Puts `key` into the root and sifts it down.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        // `at` is the current position of the key. The line contains the children of the node at
        // this position. The children of the node at position `at` of line `n` are line `4 n + at -
        // 2`.
        let (mut line, mut at, mut below) = (0, 3, 1);
        while let Some(Line(four)) = self.lines.get(below) {
            let (a, left) = if four[1] < four[0] { (1, four[1]) } else { (0, four[0]) };
            let (b, right) = if four[3] < four[2] { (3, four[3]) } else { (2, four[2]) };
            let (best, least) = if right < left { (b, right) } else { (a, left) };
            if key <= least {
                break;
            }
            self.lines[line].0[at] = least;
            (line, at, below) = (below, best, 4 * below + best - 2);
        }
        self.lines[line].0[at] = key;
    }

    /// Assigns new sequence numbers to the events in their current order. This is needed once in
    /// 2^40 events.
    #[cold]
    fn renumber(&mut self) {
        if self.hole {
            self.fill();
        }
        let mut keys: Vec<u128> = (0..self.len).map(|node| *self.at(node)).collect();
        keys.sort_unstable();
        let keep = (u128::from(u64::MAX >> (64 - SEQUENCE_BITS))) << PAYLOAD_BITS;
        for (node, key) in keys.into_iter().enumerate() {
            *self.at(node) = (key & !keep) | ((node as u128) << PAYLOAD_BITS);
        }
        self.sequence = self.len as u64;
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
                // A removal follows several insertions each time, because the heap must stay valid
                // while it shrinks and grows.
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
