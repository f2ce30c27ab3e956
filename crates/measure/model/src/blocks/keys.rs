//! Fast maps and sets of unit keys, which behave identically in every run.

use super::request::scatter;
use plimsoll_sys::hint;
use plimsoll_sys::large::Large;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with unit keys. No code iterates over it, because its order is meaningless.
pub(crate) type KeyMap<V> = HashMap<u64, V, BuildHasherDefault<ScatterHasher>>;

/// Hashes a key by [`scatter`], without a random seed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScatterHasher(u64);

impl Hasher for ScatterHasher {
    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = scatter(self.0 ^ key);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Marks an empty slot: no unit has this key.
const NO_KEY: u64 = u64::MAX;

/// A map from unit keys to small values, built for many entries. It uses open addressing with
/// linear probing, and is at most half full (D. E. Knuth, "The Art of Computer Programming", volume
/// 3, section 6.4, algorithms L and R). Consecutive keys are in adjacent slots.
#[derive(Clone, Debug)]
pub(crate) struct Table<V: Copy> {
    slots: Large<(u64, V)>,
    len: usize,
}

impl<V: Copy> Default for Table<V> {
    fn default() -> Self {
        Self { slots: Large::new(), len: 0 }
    }
}

impl<V: Copy + Default> Table<V> {
    #[inline]
    fn home(&self, key: u64) -> usize {
        (scatter(key >> 2) << 2 | (key & 3)) as usize & (self.slots.len() - 1)
    }

    /// Returns the slot of a key, or the free slot in which to insert it. There is always a free
    /// slot.
    #[inline]
    fn seek(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.slots[at].0 != key && self.slots[at].0 != NO_KEY {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        let (found, value) = &self.slots[self.seek(key)];
        (*found == key).then_some(value)
    }

    /// Returns a mutable reference to the value of a key.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        if self.len == 0 {
            return None;
        }
        let at = self.seek(key);
        let (found, value) = &mut self.slots[at];
        (*found == key).then_some(value)
    }

    /// Returns the value of a key; inserts `value` if the key has no value yet.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, key: u64, value: V) -> &mut V {
        if 2 * (self.len + 1) > self.slots.len() {
            self.grow();
        }
        let at = self.seek(key);
        if self.slots[at].0 == NO_KEY {
            self.len += 1;
            self.slots[at] = (key, value);
        }
        &mut self.slots[at].1
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        *self.get_or_insert(key, value) = value;
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(64);
        let before =
            std::mem::replace(&mut self.slots, Large::filled((NO_KEY, V::default()), slots));
        for &(key, value) in before.iter().filter(|(key, _)| *key != NO_KEY) {
            let at = self.seek(key);
            self.slots[at] = (key, value);
        }
    }

    /// Removes a key, and moves later entries so that no gap remains.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        let mut hole = self.seek(key);
        if self.slots[hole].0 != key {
            return None;
        }
        let value = self.slots[hole].1;
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.slots[at].0 == NO_KEY {
                break;
            }
            let home = self.home(self.slots[at].0);
            // An entry must stay in its slot if its home slot is cyclically in (hole, at].
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole].0 = NO_KEY;
        Some(value)
    }
}

/// A set of units. It contains one bit for each unit of a file. File numbers must be small.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    files: Vec<Large<u64>>,
    count: u64,
}

impl Bits {
    /// Adds a unit. Returns true if the set did not contain the unit.
    #[inline]
    pub(crate) fn set(&mut self, file: u32, unit: u64) -> bool {
        let (file, word) = (file as usize, (unit / 64) as usize);
        if self.files.len() <= file {
            self.files.resize_with(file + 1, Large::new);
        }
        let words = &mut self.files[file];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        let fresh = words[word] & (1 << (unit % 64)) == 0;
        words[word] |= 1 << (unit % 64);
        self.count += u64::from(fresh);
        fresh
    }

    /// Removes a unit.
    pub(crate) fn unset(&mut self, file: u32, unit: u64) {
        let words = self.files.get_mut(file as usize);
        if let Some(word) = words.and_then(|words| words.get_mut((unit / 64) as usize)) {
            self.count -= *word >> (unit % 64) & 1;
            *word &= !(1 << (unit % 64));
        }
    }

    /// Returns true if the set contains a unit.
    #[inline]
    pub(crate) fn has(&self, file: u32, unit: u64) -> bool {
        let word = self.files.get(file as usize).and_then(|f| f.get((unit / 64) as usize));
        word.is_some_and(|word| word >> (unit % 64) & 1 == 1)
    }

    /// Hints that a unit will soon be looked up.
    pub(crate) fn hint(&self, file: u32, unit: u64) {
        let word = self.files.get(file as usize).and_then(|f| f.get((unit / 64) as usize));
        if let Some(word) = word {
            hint::prefetch(word);
        }
    }

    /// Adds a range of units.
    pub(crate) fn set_range(&mut self, file: u32, units: std::ops::Range<u64>) {
        let Some(last) = units.end.checked_sub(1).filter(|last| *last >= units.start) else {
            return;
        };
        self.set(file, last);
        let words = &mut self.files[file as usize];
        for word in units.start / 64..=last / 64 {
            let first = units.start.saturating_sub(word * 64);
            let end = (units.end - word * 64).min(64);
            let bits = u64::MAX << first & u64::MAX >> (64 - end);
            let word = &mut words[word as usize];
            self.count += u64::from((bits & !*word).count_ones());
            *word |= bits;
        }
    }

    /// Returns true if the set contains at least one unit of a range.
    pub(crate) fn any(&self, file: u32, mut units: std::ops::Range<u64>) -> bool {
        let Some(words) = self.files.get(file as usize) else { return false };
        let word = |unit: u64| words.get((unit / 64) as usize).copied().unwrap_or(0);
        units.any(|unit| word(unit) & (1 << (unit % 64)) != 0)
    }

    /// Returns the number of units.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_table_is_a_map(acts in prop::collection::vec((0u64..200, 0u8..4), 0..600)) {
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for (at, (key, act)) in acts.into_iter().enumerate() {
                match act {
                    0 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                    1 => {
                        *table.get_or_insert(key, 0) += 1;
                        *map.entry(key).or_insert(0) += 1;
                    }
                    2 => {
                        table.insert(key, at);
                        map.insert(key, at);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len, map.len());
                for key in 0..200 {
                    prop_assert_eq!(table.get(key), map.get(&key));
                    prop_assert_eq!(table.get_mut(key).copied(), map.get(&key).copied());
                }
            }
        }
    }

    #[test]
    fn bits_remember_units_by_file() {
        let mut bits = Bits::default();
        assert!(bits.set(3, 70));
        assert!(!bits.set(3, 70));
        assert_eq!(bits.count(), 1);
        bits.set_range(3, 60..200);
        assert_eq!(bits.count(), 140);
        assert!(!bits.set(3, 60) && !bits.set(3, 199) && bits.set(3, 59) && bits.set(3, 200));
        assert!(bits.set(2, 70));
        assert!(bits.any(3, 0..60) && !bits.any(3, 0..59) && !bits.any(3, 201..900));
        assert!(!bits.any(9, 0..10));
        assert!(bits.has(3, 60) && !bits.has(3, 58) && !bits.has(9, 0) && !bits.has(3, 1 << 30));
        bits.unset(3, 60);
        bits.unset(3, 60);
        bits.unset(9, 0);
        assert!(!bits.has(3, 60) && bits.has(3, 61));
        assert_eq!(bits.count(), 142);
    }
}
