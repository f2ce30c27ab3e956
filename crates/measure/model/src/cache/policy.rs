//! Replacement policies: they choose the unit that is evicted from a full cache.
//!
//! - LRU: evicts the least recently used unit.
//! - Segmented LRU: units accessed once (probation) are evicted before units accessed again
//!   (protected). Protected units return to probation when they use more than their share of the
//!   cache (R. Karedla, J. S. Love and B. G. Wherry, "Caching strategies to improve disk system
//!   performance", IEEE Computer 27(3), 1994).
//! - ARC: two LRU lists with ghosts. Hits in the ghosts adapt the balance between the two lists (N.
//!   Megiddo and D. S. Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003,
//!   figure 4). The target `p` is a real number, as in the paper.
//!
//! Every policy stores a dirty flag for each unit. A write sets the flag, and an eviction returns
//! the flag to the caller. For write-back, [`Cache::clean_oldest`] returns the dirty units in the
//! order in which they became dirty.

use super::store::Store;
use std::collections::VecDeque;

/// Replacement policy of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Least recently used (LRU): evicts the unit whose last use was earliest.
    Lru,
    /// Segmented LRU. Units that were used again occupy a protected share of the capacity.
    SegmentedLru {
        /// Share of the capacity that protected units may occupy, from 0 to 1.
        protected: f64,
    },
    /// Adaptive replacement cache (ARC).
    Arc,
}

/// An evicted unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Key of the unit.
    pub key: u64,
    /// True if the unit was dirty: the cache had the only copy of its data.
    pub dirty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// True if the unit was cached before the access.
    pub hit: bool,
    /// The unit that was evicted to make space, if a unit was evicted.
    pub evicted: Option<Eviction>,
}

/// A cache of units of equal size. If its capacity is 0, every access misses.
#[derive(Clone, Debug)]
pub struct Cache {
    kind: Kind,
    capacity: usize,
    dirty: usize,
    dirty_order: VecDeque<u64>,
    hits: u64,
    misses: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Lru(Store<1>),
    Segmented { store: Store<2>, protected_max: usize },
    Arc { store: Store<4>, target: f64 },
}

const PROBATION: usize = 0;
const PROTECTED: usize = 1;

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

impl Cache {
    /// Creates a cache of `capacity` units (at most 2^31).
    pub fn new(policy: Policy, capacity: usize) -> Self {
        let kind = match policy {
            Policy::Lru => Kind::Lru(Store::new(capacity)),
            Policy::SegmentedLru { protected } => Kind::Segmented {
                store: Store::new(capacity),
                protected_max: (capacity as f64 * protected.clamp(0.0, 1.0)) as usize,
            },
            // The number of ghosts in the directory equals the capacity of the cache in units.
            Policy::Arc => Kind::Arc { store: Store::new(2 * capacity), target: 0.0 },
        };
        Self { kind, capacity, dirty: 0, dirty_order: VecDeque::new(), hits: 0, misses: 0 }
    }

    /// Returns the capacity in units.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of cached units.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Lru(store) => store.len(0),
            Kind::Segmented { store, .. } => store.len(PROBATION) + store.len(PROTECTED),
            Kind::Arc { store, .. } => store.len(T1) + store.len(T2),
        }
    }

    /// Returns true if no unit is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of dirty units.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    /// Returns the numbers of hits and misses.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Hints that a unit will soon be requested. Prefetches the memory for its lookup and for an
    /// eviction.
    #[inline]
    pub fn hint(&self, key: u64) {
        match &self.kind {
            Kind::Lru(store) => {
                store.hint(key);
                store.hint_oldest(0);
            }
            Kind::Segmented { store, .. } => {
                store.hint(key);
                store.hint_oldest(PROBATION);
            }
            Kind::Arc { store, .. } => store.hint(key),
        }
    }

    /// Returns true if a unit is cached. The call does not count as a use of the unit.
    #[inline(always)]
    pub fn contains(&self, key: u64) -> bool {
        match &self.kind {
            Kind::Lru(store) => store.find(key).is_some(),
            Kind::Segmented { store, .. } => store.find(key).is_some(),
            Kind::Arc { store, .. } => store.find(key).is_some_and(|e| store.list(e) <= T2),
        }
    }

    /// Reads a unit or, with `write`, writes it. A missing unit is inserted.
    #[inline(always)]
    pub fn access(&mut self, key: u64, write: bool) -> Access {
        if self.capacity == 0 {
            self.misses += 1;
            return Access { hit: false, evicted: None };
        }
        let (access, made_dirty) = match &mut self.kind {
            Kind::Lru(store) => lru(store, self.capacity, key, write),
            Kind::Segmented { store, protected_max } => {
                segmented(store, self.capacity, *protected_max, key, write)
            }
            Kind::Arc { store, target } => arc(store, self.capacity, target, key, write),
        };
        if access.hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        if made_dirty {
            self.dirty += 1;
            self.dirty_order.push_back(key);
        }
        if access.evicted.is_some_and(|e| e.dirty) {
            self.dirty -= 1;
        }
        access
    }

    /// Reads or writes a unit only if it is cached. A miss changes nothing.
    pub fn touch(&mut self, key: u64) -> bool {
        let hit = match &mut self.kind {
            Kind::Lru(store) => {
                let found = store.find(key);
                if let Some(entry) = found {
                    store.renew(entry, 0);
                }
                found.is_some()
            }
            _ => {
                let there = self.contains(key);
                if there {
                    self.access(key, false);
                    return true;
                }
                false
            }
        };
        *(if hit { &mut self.hits } else { &mut self.misses }) += 1;
        hit
    }

    /// Drops a unit. Returns true if it was cached.
    pub fn remove(&mut self, key: u64) -> bool {
        let removed = match &mut self.kind {
            Kind::Lru(store) => store.find(key).map(|e| store.remove(e)),
            Kind::Segmented { store, .. } => store.find(key).map(|e| store.remove(e)),
            Kind::Arc { store, .. } => {
                store.find(key).filter(|&e| store.list(e) <= T2).map(|e| store.remove(e))
            }
        };
        self.dirty -= usize::from(removed.is_some_and(|(_, dirty)| dirty));
        removed.is_some()
    }

    /// Evicts the unit that the policy selects.
    pub fn remove_oldest(&mut self) -> Option<Eviction> {
        let evicted = match &mut self.kind {
            Kind::Lru(store) => evict(store, 0),
            Kind::Segmented { store, .. } => {
                evict(store, PROBATION).or_else(|| evict(store, PROTECTED))
            }
            Kind::Arc { store, .. } => evict(store, T1).or_else(|| evict(store, T2)),
        };
        self.dirty -= usize::from(evicted.is_some_and(|e| e.dirty));
        evicted
    }

    /// Drops all units. The counters of hits and misses keep their values.
    pub fn clear(&mut self) {
        while self.remove_oldest().is_some() {}
        self.dirty_order.clear();
    }

    /// Marks the oldest dirty unit as clean and returns its key, for write-back.
    pub fn clean_oldest(&mut self) -> Option<u64> {
        while let Some(key) = self.dirty_order.pop_front() {
            let cleaned = match &mut self.kind {
                Kind::Lru(store) => clean(store, key, 0),
                Kind::Segmented { store, .. } => clean(store, key, PROTECTED),
                Kind::Arc { store, .. } => clean(store, key, T2),
            };
            if cleaned {
                self.dirty -= 1;
                return Some(key);
            }
        }
        None
    }
}

fn clean<const N: usize>(store: &mut Store<N>, key: u64, last_list: usize) -> bool {
    match store.find(key) {
        Some(entry) if store.list(entry) <= last_list && store.dirty(entry) => {
            store.set_dirty(entry, false);
            true
        }
        _ => false,
    }
}

/// Sets the dirty flag of a unit that is written. Returns true if the unit was clean.
#[inline]
fn soil<const N: usize>(store: &mut Store<N>, entry: u32, write: bool) -> bool {
    let made_dirty = write && !store.dirty(entry);
    if made_dirty {
        store.set_dirty(entry, true);
    }
    made_dirty
}

#[inline]
fn evict<const N: usize>(store: &mut Store<N>, list: usize) -> Option<Eviction> {
    let entry = store.oldest(list)?;
    let (key, dirty) = store.remove(entry);
    Some(Eviction { key, dirty })
}

#[inline]
fn lru(store: &mut Store<1>, capacity: usize, key: u64, write: bool) -> (Access, bool) {
    if let Some(entry) = store.find(key) {
        store.renew(entry, 0);
        return (Access { hit: true, evicted: None }, soil(store, entry, write));
    }
    let evicted = if store.len(0) >= capacity { evict(store, 0) } else { None };
    store.insert(key, 0, write);
    (Access { hit: false, evicted }, write)
}

#[inline]
fn segmented(
    store: &mut Store<2>,
    capacity: usize,
    protected_max: usize,
    key: u64,
    write: bool,
) -> (Access, bool) {
    if let Some(entry) = store.find(key) {
        let made_dirty = soil(store, entry, write);
        if protected_max == 0 {
            store.renew(entry, PROBATION);
        } else {
            store.renew(entry, PROTECTED);
            if store.len(PROTECTED) > protected_max
                && let Some(oldest) = store.oldest(PROTECTED)
            {
                store.renew(oldest, PROBATION);
            }
        }
        return (Access { hit: true, evicted: None }, made_dirty);
    }
    let evicted = if store.len(PROBATION) + store.len(PROTECTED) < capacity {
        None
    } else if store.len(PROBATION) > 0 {
        evict(store, PROBATION)
    } else {
        evict(store, PROTECTED)
    };
    store.insert(key, PROBATION, write);
    (Access { hit: false, evicted }, write)
}

/// REPLACE of the paper: moves the oldest unit of T1 or T2 to its ghosts.
#[inline]
fn replace(store: &mut Store<4>, target: f64, in_b2: bool) -> Option<Eviction> {
    let t1 = store.len(T1) as f64;
    let from_t1 = t1 >= 1.0 && ((in_b2 && t1 == target) || t1 > target);
    let (list, ghosts) = if from_t1 { (T1, B1) } else { (T2, B2) };
    let entry = store.oldest(list)?;
    let evicted = Eviction { key: store.key(entry), dirty: store.dirty(entry) };
    store.set_dirty(entry, false);
    store.renew(entry, ghosts);
    Some(evicted)
}

#[inline]
fn arc(
    store: &mut Store<4>,
    capacity: usize,
    target: &mut f64,
    key: u64,
    write: bool,
) -> (Access, bool) {
    let c = capacity as f64;
    if let Some(entry) = store.find(key) {
        let list = store.list(entry);
        if list <= T2 {
            store.renew(entry, T2);
            return (Access { hit: true, evicted: None }, soil(store, entry, write));
        }
        let (b1, b2) = (store.len(B1) as f64, store.len(B2) as f64);
        if list == B1 {
            *target = (*target + if b1 >= b2 { 1.0 } else { b2 / b1 }).min(c);
        } else {
            *target = (*target - if b2 >= b1 { 1.0 } else { b1 / b2 }).max(0.0);
        }
        let evicted = replace(store, *target, list == B2);
        store.renew(entry, T2);
        return (Access { hit: false, evicted }, soil(store, entry, write));
    }
    let first = store.len(T1) + store.len(B1);
    let all = first + store.len(T2) + store.len(B2);
    let evicted = if first == capacity {
        if store.len(T1) < capacity {
            evict(store, B1);
            replace(store, *target, false)
        } else {
            evict(store, T1)
        }
    } else if all >= capacity {
        if all == 2 * capacity {
            evict(store, B2);
        }
        replace(store, *target, false)
    } else {
        None
    };
    store.insert(key, T1, write);
    (Access { hit: false, evicted }, write)
}
