//! Maps and sets over the keys of units: fast, and the same on every run.

use super::request::scatter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by key. It is never iterated over: the order would mean nothing.
pub(crate) type Keyed<V> = HashMap<u64, V, BuildHasherDefault<Scattered>>;

/// Hashes a key by [`scatter`]: without a random seed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scattered(u64);

impl Hasher for Scattered {
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

/// A set of units, one bit for each, file by file. Files are small numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    files: Vec<Vec<u64>>,
    count: u64,
}

impl Bits {
    /// Adds a unit; true if it was not there.
    #[inline]
    pub(crate) fn set(&mut self, file: u32, unit: u64) -> bool {
        let (file, word) = (file as usize, (unit / 64) as usize);
        if self.files.len() <= file {
            self.files.resize(file + 1, Vec::new());
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

    /// Adds a range of units.
    pub(crate) fn set_range(&mut self, file: u32, units: std::ops::Range<u64>) {
        let mut unit = units.start;
        while unit < units.end {
            if unit.is_multiple_of(64) && units.end - unit >= 64 {
                self.set(file, unit);
                let word = &mut self.files[file as usize][(unit / 64) as usize];
                self.count += u64::from(word.count_zeros());
                *word = u64::MAX;
                unit += 64;
            } else {
                self.set(file, unit);
                unit += 1;
            }
        }
    }

    /// Whether any of a range of units is there.
    pub(crate) fn any(&self, file: u32, mut units: std::ops::Range<u64>) -> bool {
        let Some(words) = self.files.get(file as usize) else { return false };
        let word = |unit: u64| words.get((unit / 64) as usize).copied().unwrap_or(0);
        units.any(|unit| word(unit) & (1 << (unit % 64)) != 0)
    }

    /// Number of units.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
