//! Index of entries by key: an open-addressed table of entry numbers. The entries themselves
//! contain the keys.
//!
//! The table maps a key to the number of its entry by linear probing with backward-shift deletion
//! (D. E. Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm R). It is at
//! most half full. A slot also contains 32 bits of the key's hash, so an entry is read only if it
//! is very likely the correct entry. These bits also determine the entry's home slot. When the
//! index closes a gap or grows, it therefore reads only the table, and not the entries, which are
//! scattered in memory. Units are often looked up in sequence, so the home slots of eight
//! consecutive keys are adjacent, in one or two cache lines.

use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

const EMPTY: u64 = u64::MAX;

/// Index of at most 2^32 - 1 entries.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    table: Large<u64>,
    mask: usize,
    len: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self::new(8)
    }
}

/// Hashes a group of adjacent keys (the finaliser of D. Stafford's "Mix 13", as in SplitMix64).
#[inline]
fn mix(key: u64) -> u32 {
    let x = key >> 3;
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) as u32) << 3 | (key & 7) as u32
}

impl Index {
    /// Creates an empty table of `slots` slots, a power of two. The table grows when it is half
    /// full.
    pub(crate) fn new(slots: usize) -> Self {
        Self { table: Large::filled(EMPTY, slots), mask: slots - 1, len: 0 }
    }

    /// Hints that a key will soon be looked up.
    #[inline]
    pub(crate) fn hint(&self, key: u64) {
        hint::prefetch(&self.table[mix(key) as usize & self.mask]);
    }

    /// Returns the number of the entry that has a key. The caller's function `is` receives an entry
    /// number, and returns true if that entry has this key.
    #[inline]
    pub(crate) fn find(&self, key: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = mix(key);
        let mut at = tag as usize & self.mask;
        loop {
            let slot = self.table[at];
            if slot == EMPTY {
                return None;
            }
            if (slot >> 32) as u32 == tag && is(slot as u32) {
                return Some(slot as u32);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds the entry of a new key.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, entry: u32) {
        self.len += 1;
        if 2 * self.len > self.table.len() {
            self.grow();
        }
        self.put(u64::from(mix(key)) << 32 | u64::from(entry));
    }

    /// Stores a slot value at the first free position, starting at its home.
    #[inline]
    fn put(&mut self, slot: u64) {
        let mut at = (slot >> 32) as usize & self.mask;
        while self.table[at] != EMPTY {
            at = (at + 1) & self.mask;
        }
        self.table[at] = slot;
    }

    /// Doubles the table.
    #[cold]
    fn grow(&mut self) {
        let slots = 2 * self.table.len();
        let before = std::mem::replace(&mut self.table, Large::filled(EMPTY, slots));
        self.mask = slots - 1;
        before.iter().filter(|slot| **slot != EMPTY).for_each(|slot| self.put(*slot));
    }

    /// Removes the entry of an existing key, and moves later entries so that no gap remains.
    #[inline]
    pub(crate) fn remove(&mut self, key: u64, entry: u32) {
        let tag = mix(key);
        let slot = u64::from(tag) << 32 | u64::from(entry);
        let mut hole = tag as usize & self.mask;
        while self.table[hole] != slot {
            hole = (hole + 1) & self.mask;
        }
        self.len -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let slot = self.table[at];
            if slot == EMPTY {
                break;
            }
            let home = (slot >> 32) as usize & self.mask;
            // An entry must stay in its slot if its home slot is cyclically in (hole, at].
            if (at.wrapping_sub(home) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                self.table[hole] = slot;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn finds_what_a_map_finds(acts in prop::collection::vec((0u64..60, any::<bool>()), 0..600)) {
            let (mut index, mut keys, mut map) = (Index::default(), Vec::new(), HashMap::new());
            for (key, add) in acts {
                match map.get(&key) {
                    None if add => {
                        index.insert(key, keys.len() as u32);
                        map.insert(key, keys.len() as u32);
                        keys.push(key);
                    }
                    Some(&entry) if !add => {
                        index.remove(key, entry);
                        map.remove(&key);
                    }
                    _ => {}
                }
                for key in 0..60 {
                    let found = index.find(key, |entry| keys[entry as usize] == key);
                    prop_assert_eq!(found, map.get(&key).copied());
                }
            }
        }
    }
}
