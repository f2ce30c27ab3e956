//! Memory of a cache. One flat array contains the entries. Entries are linked into a few lists, and
//! an [`Index`] finds an entry by its key.

use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

use super::index::Index;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    newer: u32,
    older: u32,
    list: u8,
    dirty: bool,
}

#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

/// Entries of a cache. An entry may be in one of `LISTS` lists.
#[derive(Clone, Debug)]
pub(crate) struct Store<const LISTS: usize> {
    entries: Large<Entry>,
    free: u32,
    lists: [List; LISTS],
    index: Index,
}

impl<const LISTS: usize> Store<LISTS> {
    /// Creates an empty store. Its table starts small and grows to at most `2 * capacity` slots, so
    /// a cache that never fills up needs less memory.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = (2 * capacity.max(4)).next_power_of_two().min(1 << 16);
        Self {
            entries: Large::new(),
            free: NONE,
            lists: [List { newest: NONE, oldest: NONE, len: 0 }; LISTS],
            index: Index::new(slots),
        }
    }

    /// Hints that a key will soon be looked up.
    #[inline]
    pub(crate) fn hint(&self, key: u64) {
        self.index.hint(key);
    }

    /// Hints that the oldest entry of a list will soon be evicted.
    #[inline]
    pub(crate) fn hint_oldest(&self, list: usize) {
        if let Some(entry) = self.entries.get(self.lists[list].oldest as usize) {
            self.hint(entry.key);
            if let Some(newer) = self.entries.get(entry.newer as usize) {
                hint::prefetch(newer);
            }
        }
    }

    /// Returns the length of a list.
    #[inline]
    pub(crate) fn len(&self, list: usize) -> usize {
        self.lists[list].len as usize
    }

    /// Returns the entry that contains a key.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<u32> {
        self.index.find(key, |entry| self.entries[entry as usize].key == key)
    }

    #[inline]
    pub(crate) fn list(&self, entry: u32) -> usize {
        usize::from(self.entries[entry as usize].list)
    }

    #[inline]
    pub(crate) fn key(&self, entry: u32) -> u64 {
        self.entries[entry as usize].key
    }

    /// Returns true if an entry is dirty.
    #[inline]
    pub(crate) fn dirty(&self, entry: u32) -> bool {
        self.entries[entry as usize].dirty
    }

    /// Marks an entry dirty or clean.
    #[inline]
    pub(crate) fn set_dirty(&mut self, entry: u32, dirty: bool) {
        self.entries[entry as usize].dirty = dirty;
    }

    /// Adds an entry with a new key as the newest entry of a list.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, list: usize, dirty: bool) -> u32 {
        let entry = Entry { key, newer: NONE, older: NONE, list: list as u8, dirty };
        let index = if self.free == NONE {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.entries[index as usize].older;
            self.entries[index as usize] = entry;
            index
        };
        self.link_newest(index, list);
        self.index.insert(key, index);
        index
    }

    /// Makes an entry the newest entry of a list. If the entry is in another list, moves it to this
    /// list.
    #[inline]
    pub(crate) fn renew(&mut self, entry: u32, list: usize) {
        if self.lists[list].newest == entry {
            return;
        }
        self.unlink(entry);
        self.link_newest(entry, list);
    }

    /// Returns the oldest entry of a list.
    #[inline]
    pub(crate) fn oldest(&self, list: usize) -> Option<u32> {
        let index = self.lists[list].oldest;
        (index != NONE).then_some(index)
    }

    /// Removes an entry. Returns its key, and whether it was dirty.
    #[inline]
    pub(crate) fn remove(&mut self, entry: u32) -> (u64, bool) {
        self.unlink(entry);
        let Entry { key, dirty, .. } = self.entries[entry as usize];
        self.index.remove(key, entry);
        self.entries[entry as usize].older = self.free;
        self.free = entry;
        (key, dirty)
    }

    #[inline]
    fn link_newest(&mut self, entry: u32, list: usize) {
        let List { newest, .. } = self.lists[list];
        let node = &mut self.entries[entry as usize];
        node.list = list as u8;
        node.newer = NONE;
        node.older = newest;
        if newest == NONE {
            self.lists[list].oldest = entry;
        } else {
            self.entries[newest as usize].newer = entry;
        }
        self.lists[list].newest = entry;
        self.lists[list].len += 1;
    }

    #[inline]
    fn unlink(&mut self, entry: u32) {
        let Entry { newer, older, list, .. } = self.entries[entry as usize];
        let list = &mut self.lists[usize::from(list)];
        list.len -= 1;
        if newer == NONE {
            list.newest = older;
        } else {
            self.entries[newer as usize].older = older;
        }
        if older == NONE {
            list.oldest = newer;
        } else {
            self.entries[older as usize].newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn behaves_as_a_map(operations in prop::collection::vec((0u64..40, any::<bool>()), 0..600)) {
            let mut store = Store::<1>::new(8);
            let mut map = HashMap::new();
            for (key, add) in operations {
                prop_assert_eq!(store.find(key).is_some(), map.contains_key(&key));
                match store.find(key) {
                    Some(entry) if !add => {
                        store.remove(entry);
                        map.remove(&key);
                    }
                    None if add && map.len() < 8 => {
                        store.insert(key, 0, false);
                        map.insert(key, ());
                    }
                    _ => {}
                }
                prop_assert_eq!(store.len(0), map.len());
            }
        }
    }
}
