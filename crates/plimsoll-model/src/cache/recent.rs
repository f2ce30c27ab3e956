//! What was used last among extents that files are full of: an exact LRU order for keys that are dense.
//!
//! Every extent has a place of its own, found by file and number without a search, with the stamp of its
//! last use; the order is a queue of the uses, one after the other. A use that is not the last of its extent
//! has another stamp than the extent and is passed over, so that a use costs one line of memory wherever it
//! is and one that is at hand, where linked entries cost four anywhere. The queue is put in order when it
//! has grown to twice what is held: constant time for a use, in the mean. (Stamps in place of links:
//! the exact LRU of a log of uses, as in B. T. Bennett and V. J. Kruskal, "LRU stack processing", IBM
//! Journal of Research and Development 19(4), 1975.)
//!
//! [`Cache`](super::Cache) is for keys that are anywhere.

use plimsoll_sys::hint;
use plimsoll_sys::large::{Large, Zero};

/// How far ahead of the queue's end extents are brought near.
const AHEAD: usize = 8;

/// What is known of an extent: when it was used last (0: it is not held), with room for a note or without.
pub(crate) trait Extent: Zero + Default {
    /// When it was used last.
    fn stamp(self) -> u32;
    /// The same, used at another time.
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

/// The note is in the upper half.
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

/// The extents that were used last, up to a number of them. Keys are those of
/// [`Request::key`](crate::blocks::Request): a file above 40 bits of an extent's number.
#[derive(Clone, Debug)]
pub(crate) struct Recent<E: Extent> {
    /// By file and number.
    extents: Vec<Large<E>>,
    /// Keys in the order of their uses; the first one's stamp is `first`.
    uses: Uses,
    first: u32,
    len: usize,
    capacity: usize,
}

/// A queue of keys: a ring in a large table.
#[derive(Clone, Debug, Default)]
struct Uses {
    keys: Large<u64>,
    head: usize,
    len: usize,
}

impl Uses {
    /// The key in a place, the oldest in place 0.
    #[inline]
    fn get(&self, at: usize) -> Option<u64> {
        (at < self.len).then(|| self.keys[(self.head + at) & (self.keys.len() - 1)])
    }

    /// Replaces the key in a place that is in use.
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

/// File and number of a key.
#[inline]
fn place(key: u64) -> (usize, usize) {
    ((key >> 40) as usize, (key & ((1 << 40) - 1)) as usize)
}

impl<E: Extent> Recent<E> {
    /// Nothing, with room for `capacity` extents.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { extents: Vec::new(), uses: Uses::default(), first: 1, len: 0, capacity }
    }

    /// Extents it can hold.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Extents it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True if it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An extent will be used soon.
    #[inline]
    pub(crate) fn hint(&self, key: u64) {
        let (file, at) = place(key);
        if let Some(extent) = self.extents.get(file).and_then(|places| places.get(at)) {
            hint::prefetch(extent);
        }
    }

    /// An extent's place. Places of extents that are never used take no memory where a file has many.
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

    /// Stamp of an extent; 0 if it is not held.
    #[inline]
    fn stamp(&self, key: u64) -> u32 {
        let (file, at) = place(key);
        self.extents.get(file).and_then(|places| places.get(at)).map_or(0, |extent| extent.stamp())
    }

    /// Uses an extent if it is held.
    #[inline(always)]
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        let held = self.stamp(key) != 0;
        if held {
            self.stamp_now(key);
        }
        held
    }

    /// Uses an extent: true if it was held, else it is from now on, in place of the one that was used
    /// longest ago where there is no room.
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
        if self.uses.len > 2 * self.len + 1024 || self.uses.len as u32 >= u32::MAX - self.first {
            self.put_in_order();
        }
        let stamp = self.first + self.uses.len as u32;
        let extent = self.extent(key);
        *extent = extent.stamped(stamp);
        self.uses.push(key);
    }

    /// Stops holding the extent that was used longest ago, and gives its key.
    pub(crate) fn remove_oldest(&mut self) -> Option<u64> {
        while let Some(key) = self.uses.pop() {
            let stamp = self.first;
            self.first += 1;
            if let Some(ahead) = self.uses.get(AHEAD) {
                self.hint(ahead);
            }
            let extent = self.extent(key);
            if extent.stamp() == stamp {
                *extent = extent.stamped(0);
                self.len -= 1;
                return Some(key);
            }
        }
        None
    }

    /// Stops holding anything. Notes stay.
    pub(crate) fn clear(&mut self) {
        while self.remove_oldest().is_some() {}
        self.first = 1;
    }

    /// Leaves out the uses that are not the last of their extent, and counts stamps from 1 again. New stamps
    /// are never above the old ones of the uses that are still to come, which so keep their meaning.
    #[cold]
    fn put_in_order(&mut self) {
        let mut kept = 0;
        for at in 0..self.uses.len {
            if let Some(ahead) = self.uses.get(at + AHEAD) {
                self.hint(ahead);
            }
            let Some(key) = self.uses.get(at) else { break };
            let old = self.first + at as u32;
            let extent = self.extent(key);
            if extent.stamp() == old {
                *extent = extent.stamped(kept + 1);
                self.uses.set(kept as usize, key);
                kept += 1;
            }
        }
        (self.uses.len, self.first) = (kept as usize, 1);
    }
}

impl Recent<u64> {
    /// What is noted of an extent, held or not; 0 at first.
    #[inline]
    pub(crate) fn note(&mut self, key: u64) -> u32 {
        (*self.extent(key) >> 32) as u32
    }

    /// Notes something of an extent.
    #[inline]
    pub(crate) fn set_note(&mut self, key: u64, note: u32) {
        let extent = self.extent(key);
        *extent = u64::from(note) << 32 | u64::from(*extent as u32);
    }

    /// Forgets what is noted of all extents.
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

    /// What is done: use if held, use, remove the oldest, note, put in order.
    fn acts() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop::collection::vec((0u8..6, 0u64..60), 0..800)
    }

    proptest! {
        /// It holds what a plain list of keys in the order of use holds.
        #[test]
        fn holds_what_was_used_last(capacity in 0usize..20, acts in acts(), late in any::<bool>()) {
            let mut recent = Recent::<u64>::new(capacity);
            if late {
                recent.first = u32::MAX - 100;
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
                    _ => recent.put_in_order(),
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
    fn uses_of_few_extents_take_little_room() {
        let mut recent = Recent::<u32>::new(100);
        for use_ in 0..1_000_000u64 {
            recent.access((3 << 40) | (use_ % 50));
        }
        assert_eq!(recent.len(), 50);
        assert!(recent.uses.len <= 1300, "{}", recent.uses.len);
        recent.clear();
        assert!(recent.is_empty() && !recent.touch(3 << 40));
    }
}
