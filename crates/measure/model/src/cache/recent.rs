//! Keeps the exact LRU order of extents whose keys are dense.
//!
//! Every extent has an entry, indexed by file and number, with the stamp of its last use. Recording
//! a use touches one cache line; a linked list of entries would touch four. There is no queue
//! before the first eviction. At the first eviction, the extents are sorted by stamp into a queue,
//! and each later use is appended to the queue. A queue entry is skipped if its stamp differs from
//! the stamp of the extent, because the extent was used again after the entry was added. The queue
//! is compacted when it has twice as many entries as there are extents. It is dropped if nothing
//! was evicted since the last compaction. The time for a use is therefore constant on average.
//! (Stamps replace the links: this is the exact LRU of a log of uses, as in B. T. Bennett and V. J.
//! Kruskal, "LRU stack processing", IBM Journal of Research and Development 19(4), 1975.)
//!
//! For sparse keys, use [`Cache`](super::Cache).

use plimsoll_sys::hint;
use plimsoll_sys::large::{Large, Zero};

/// The state of an extent is prefetched while this number of queue entries are still to be
/// processed before it.
const AHEAD: usize = 8;

/// State of an extent: the stamp of its last use (0 if the extent is not cached). Some types also
/// contain a note.
pub(crate) trait Extent: Zero + Default {
    /// Returns the stamp of the last use.
    fn stamp(self) -> u32;
    /// Returns a copy of this state with a different stamp.
    fn stamped(self, stamp: u32) -> Self;
}

impl Extent for u32 {
    #[inline]
    fn stamp(self) -> u32 {
        self
    }

    #[inline]
    fn stamped(self, stamp: u32) -> Self {
        stamp
    }
}

/// Packs an extent into one number: the upper half is the note, the lower half is the stamp.
impl Extent for u64 {
    #[inline]
    fn stamp(self) -> u32 {
        self as u32
    }

    #[inline]
    fn stamped(self, stamp: u32) -> Self {
        self >> 32 << 32 | u64::from(stamp)
    }
}

/// The most recently used extents, up to a maximum number. Keys are created by
/// [`Request::key`](crate::blocks::Request): the extent number is in the low 40 bits, the file
/// number in the higher bits.
#[derive(Clone, Debug)]
pub(crate) struct Recent<E: Extent> {
    /// State of each extent, indexed by file and extent number.
    extents: Vec<Large<E>>,
    /// Stamp of the last use of any extent. An extent is cached only if its own stamp is above
    /// `floor`.
    last: u32,
    floor: u32,
    len: usize,
    capacity: usize,
    /// Eviction queue; `None` before the first eviction.
    queue: Option<Queue>,
}

/// Keys in the order of their uses. The first key has the stamp `first`, and stamps are
/// consecutive.
#[derive(Clone, Debug)]
struct Queue {
    uses: Uses,
    first: u32,
    /// True if extents were evicted since the last compaction.
    shrunk: bool,
}

/// A queue of keys: a ring in a large table.
#[derive(Clone, Debug, Default)]
struct Uses {
    keys: Large<u64>,
    head: usize,
    len: usize,
}

impl Uses {
    /// Returns the key at a position; the oldest has position 0.
    #[inline]
    fn get(&self, at: usize) -> Option<u64> {
        (at < self.len).then(|| self.keys[(self.head + at) & (self.keys.len() - 1)])
    }

    /// Replaces the key at a position that is in use.
    fn set(&mut self, at: usize, key: u64) {
        let mask = self.keys.len() - 1;
        self.keys[(self.head + at) & mask] = key;
    }

    #[inline]
    fn push(&mut self, key: u64) {
        if self.len == self.keys.len() {
            self.grow();
        }
        self.len += 1;
        self.set(self.len - 1, key);
    }

    #[inline]
    fn pop(&mut self) -> Option<u64> {
        let key = self.get(0)?;
        self.head += 1;
        self.len -= 1;
        Some(key)
    }

    /// Doubles the ring.
    #[cold]
    fn grow(&mut self) {
        let mut keys = Large::filled(0, (2 * self.len).max(64));
        for at in 0..self.len {
            keys[at] = self.get(at).unwrap_or_default();
        }
        (self.keys, self.head) = (keys, 0);
    }
}

/// Splits a key into the file and the extent number.
#[inline]
fn place(key: u64) -> (usize, usize) {
    ((key >> 40) as usize, (key & ((1 << 40) - 1)) as usize)
}

impl<E: Extent> Recent<E> {
    /// Creates an empty list with room for `capacity` extents.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { extents: Vec::new(), last: 0, floor: 0, len: 0, capacity, queue: None }
    }

    /// Returns the capacity in extents.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of cached extents.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no extent is cached.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hints that an extent will be used soon.
    #[inline]
    pub(crate) fn hint(&self, key: u64) {
        let (file, at) = place(key);
        if let Some(extent) = self.extents.get(file).and_then(|places| places.get(at)) {
            hint::prefetch(extent);
        }
    }

    /// Returns an extent's entry. Extents of a large file that are never used need no memory.
    #[inline(always)]
    fn extent(&mut self, key: u64) -> &mut E {
        let (file, at) = place(key);
        if self.extents.get(file).is_none_or(|places| places.len() <= at) {
            if self.extents.len() <= file {
                self.extents.resize_with(file + 1, Large::new);
            }
            self.extents[file].widen(at + 1);
        }
        &mut self.extents[file][at]
    }

    /// Returns true if an extent is cached.
    #[inline]
    pub(crate) fn holds(&self, key: u64) -> bool {
        let (file, at) = place(key);
        let extent = self.extents.get(file).and_then(|places| places.get(at));
        extent.is_some_and(|extent| extent.stamp() > self.floor)
    }

    /// Uses an extent if it is cached. Returns true if it was.
    #[inline(always)]
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        let held = self.holds(key);
        if held {
            self.stamp_now(key);
        }
        held
    }

    /// Uses an extent. Returns true if it was cached. Otherwise inserts it and, if there is no
    /// space, evicts the least recently used extent.
    #[inline(always)]
    pub(crate) fn access(&mut self, key: u64) -> bool {
        if self.touch(key) {
            return true;
        }
        if self.capacity > 0 {
            if self.len >= self.capacity {
                self.remove_oldest();
            }
            self.len += 1;
            self.stamp_now(key);
        }
        false
    }

    #[inline(always)]
    fn stamp_now(&mut self, key: u64) {
        if self.queue.is_some() || self.last == u32::MAX {
            self.queue_up(key);
        }
        self.last += 1;
        let last = self.last;
        let extent = self.extent(key);
        *extent = extent.stamped(last);
    }

    /// Appends a use to the queue. If the stamps are exhausted, renumbers them first.
    #[inline(never)]
    fn queue_up(&mut self, key: u64) {
        let Some(queue) = &self.queue else {
            // The stamps are exhausted, so cached extents get new stamps from 1 on.
            self.sort();
            self.queue = None;
            return;
        };
        if queue.uses.len > 2 * self.len + 1024 || self.last == u32::MAX {
            let places: usize = self.extents.iter().map(|places| places.len()).sum();
            if !queue.shrunk && places <= 8 * self.len && self.last < u32::MAX {
                self.queue = None;
                return;
            }
            self.put_in_order();
        }
        if let Some(queue) = &mut self.queue {
            queue.uses.push(key);
        }
    }

    /// Evicts the least recently used extent, and returns its key.
    pub(crate) fn remove_oldest(&mut self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        if self.queue.is_none() {
            self.sort();
        }
        loop {
            let queue = self.queue.as_mut()?;
            let key = queue.uses.pop()?;
            let stamp = queue.first;
            queue.first += 1;
            queue.shrunk = true;
            let ahead = queue.uses.get(AHEAD);
            if let Some(ahead) = ahead {
                self.hint(ahead);
            }
            let extent = self.extent(key);
            if extent.stamp() == stamp {
                *extent = extent.stamped(0);
                self.len -= 1;
                return Some(key);
            }
        }
    }

    /// Evicts all extents. Their notes remain.
    pub(crate) fn clear(&mut self) {
        (self.floor, self.len, self.queue) = (self.last, 0, None);
    }

    /// Builds a queue of the cached extents, and assigns new stamps to them, starting from 1. All
    /// other extents lose their stamps.
    #[cold]
    fn sort(&mut self) {
        let mut held = Vec::with_capacity(self.len);
        for (file, places) in self.extents.iter_mut().enumerate() {
            for (at, extent) in places.iter_mut().enumerate() {
                match extent.stamp() {
                    0 => {}
                    stamp if stamp > self.floor => {
                        held.push((stamp, (file as u64) << 40 | at as u64));
                    }
                    _ => *extent = extent.stamped(0),
                }
            }
        }
        held.sort_unstable();
        let mut uses = Uses::default();
        for (at, (_, key)) in held.iter().enumerate() {
            if let Some((_, ahead)) = held.get(at + AHEAD) {
                self.hint(*ahead);
            }
            uses.push(*key);
            let extent = self.extent(*key);
            *extent = extent.stamped(at as u32 + 1);
        }
        (self.last, self.floor) = (uses.len as u32, 0);
        self.queue = Some(Queue { uses, first: 1, shrunk: false });
    }

    /// Drops all queue entries except the last use of each extent, and renumbers the stamps,
    /// starting from 1. The new stamp of a use is never greater than the old stamp of a later use.
    /// Until the later use gets its new stamp, its old stamp therefore still sorts correctly.
    #[cold]
    fn put_in_order(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        let mut kept = 0;
        for at in 0..queue.uses.len {
            if let Some(ahead) = queue.uses.get(at + AHEAD) {
                self.hint(ahead);
            }
            let Some(key) = queue.uses.get(at) else { break };
            let old = queue.first + at as u32;
            let extent = self.extent(key);
            if extent.stamp() == old {
                *extent = extent.stamped(kept + 1);
                queue.uses.set(kept as usize, key);
                kept += 1;
            }
        }
        queue.uses.len = kept as usize;
        (queue.first, queue.shrunk, self.last) = (1, false, kept);
        self.queue = Some(queue);
    }
}

impl Recent<u64> {
    /// Returns the note of an extent, even if the extent is not cached. The note is initially 0.
    #[inline]
    pub(crate) fn note(&mut self, key: u64) -> u32 {
        (*self.extent(key) >> 32) as u32
    }

    /// Sets the note of an extent.
    #[inline]
    pub(crate) fn set_note(&mut self, key: u64, note: u32) {
        let extent = self.extent(key);
        *extent = u64::from(note) << 32 | u64::from(*extent as u32);
    }

    /// Clears the notes of all extents.
    pub(crate) fn clear_notes(&mut self) {
        for extent in self.extents.iter_mut().flat_map(|places| places.iter_mut()) {
            *extent = u64::from(*extent as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Generates random actions: use a cached extent, use any extent, remove the oldest extent, set
    /// a note, compact the queue, sort the queue, and sometimes clear the cache.
    fn acts() -> impl Strategy<Value = Vec<(u8, u64)>> {
        let act = prop_oneof![100 => 0u8..7, 1 => Just(7)];
        prop::collection::vec((act, 0u64..60), 0..800)
    }

    proptest! {
        /// The cache behaves like a simple list of keys, ordered by their last use.
        #[test]
        fn holds_what_was_used_last(capacity in 0usize..20, acts in acts(), late in any::<bool>()) {
            let mut recent = Recent::<u64>::new(capacity);
            if late {
                recent.last = u32::MAX - 100;
            }
            let (mut list, mut notes) = (VecDeque::<u64>::new(), [0u32; 60]);
            for (act, number) in acts {
                let key = ((number % 3) << 40) | number;
                let held = list.contains(&key);
                match act {
                    0 => prop_assert_eq!(recent.touch(key), held),
                    1 | 2 => prop_assert_eq!(recent.access(key), held),
                    3 => prop_assert_eq!(recent.remove_oldest(), list.pop_front()),
                    4 => {
                        notes[number as usize] += 1;
                        recent.set_note(key, notes[number as usize]);
                    }
                    5 => recent.put_in_order(),
                    6 => recent.sort(),
                    _ => {
                        recent.clear();
                        list.clear();
                    }
                }
                if held && act <= 2 || act == 1 || act == 2 {
                    list.retain(|&k| k != key);
                    list.push_back(key);
                    while list.len() > capacity {
                        list.pop_front();
                    }
                }
                prop_assert_eq!(recent.len(), list.len());
                prop_assert_eq!(recent.note(key), notes[number as usize]);
            }
            while let Some(key) = recent.remove_oldest() {
                prop_assert_eq!(Some(key), list.pop_front());
            }
            prop_assert!(list.is_empty() && recent.is_empty());
        }
    }

    #[test]
    fn uses_take_little_room_and_none_while_nothing_has_to_go() {
        let mut recent = Recent::<u32>::new(40);
        for use_ in 0..1_000_000u64 {
            recent.access((3 << 40) | (use_ % 50));
        }
        assert_eq!(recent.len(), 40);
        assert!(recent.queue.as_ref().is_some_and(|queue| queue.uses.len <= 2 * 40 + 1025));
        for use_ in 0..10_000u64 {
            recent.access((3 << 40) | (use_ % 10));
        }
        assert!(recent.queue.is_none() && recent.len() == 40);
        // Renumbering keeps the order of use, so the most recently used extents are still cached.
        for extent in 100..130 {
            recent.access((3 << 40) | extent);
        }
        assert!((0..10).all(|extent| recent.touch((3 << 40) | extent)));
        recent.clear();
        assert!(recent.is_empty() && !recent.touch(3 << 40));
    }
}
