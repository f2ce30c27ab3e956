//! Compares the cache policies with plain implementations of the published algorithms: the same
//! requests must cause the same hits and evictions. The plain implementations use ordered vectors
//! and no index, so they share no code or memory layout with the tested policies.

use plimsoll_model::cache::{Cache, Policy};
use plimsoll_model::core::rng::Stream;
use plimsoll_workload::address::Zipf;
use proptest::prelude::*;

/// Units in the order of their last use; the most recently used unit is last.
type Order = Vec<u64>;

fn take(list: &mut Order, key: u64) -> bool {
    let at = list.iter().position(|&k| k == key);
    at.map(|at| list.remove(at)).is_some()
}

trait Plain {
    /// Accesses a unit. Returns true for a hit, and the unit that was evicted, if there is one.
    fn access(&mut self, key: u64) -> (bool, Option<u64>);
}

struct Lru {
    c: usize,
    list: Order,
}

impl Plain for Lru {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        let hit = take(&mut self.list, key);
        self.list.push(key);
        let left = (self.list.len() > self.c).then(|| self.list.remove(0));
        (hit, left)
    }
}

struct Slru {
    c: usize,
    protected_max: usize,
    probation: Order,
    protected: Order,
}

impl Plain for Slru {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        if take(&mut self.protected, key) || take(&mut self.probation, key) {
            self.protected.push(key);
            if self.protected.len() > self.protected_max {
                let back = self.protected.remove(0);
                self.probation.push(back);
            }
            return (true, None);
        }
        let mut left = None;
        if self.probation.len() + self.protected.len() == self.c {
            let from =
                if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
            left = Some(from.remove(0));
        }
        self.probation.push(key);
        (false, left)
    }
}

/// ARC as in figure 4 of Megiddo and Modha, case by case.
#[derive(Default)]
struct ArcPaper {
    c: usize,
    p: f64,
    t1: Order,
    t2: Order,
    b1: Order,
    b2: Order,
}

impl ArcPaper {
    fn replace(&mut self, in_b2: bool) -> Option<u64> {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && ((in_b2 && t1 == self.p) || t1 > self.p) {
            let lru = self.t1.remove(0);
            self.b1.push(lru);
            Some(lru)
        } else {
            let lru = self.t2.remove(0);
            self.b2.push(lru);
            Some(lru)
        }
    }
}

impl Plain for ArcPaper {
    fn access(&mut self, x: u64) -> (bool, Option<u64>) {
        // Case I.
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push(x);
            return (true, None);
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        // Case II.
        if self.b1.contains(&x) {
            self.p = (self.p + if b1 >= b2 { 1.0 } else { b2 / b1 }).min(self.c as f64);
            let left = self.replace(false);
            take(&mut self.b1, x);
            self.t2.push(x);
            return (false, left);
        }
        // Case III.
        if self.b2.contains(&x) {
            self.p = (self.p - if b2 >= b1 { 1.0 } else { b1 / b2 }).max(0.0);
            let left = self.replace(true);
            take(&mut self.b2, x);
            self.t2.push(x);
            return (false, left);
        }
        // Case IV.
        let l1 = self.t1.len() + self.b1.len();
        let all = l1 + self.t2.len() + self.b2.len();
        let mut left = None;
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.remove(0);
                left = self.replace(false);
            } else {
                left = Some(self.t1.remove(0));
            }
        } else if l1 < self.c && all >= self.c {
            if all == 2 * self.c {
                self.b2.remove(0);
            }
            left = self.replace(false);
        }
        self.t1.push(x);
        (false, left)
    }
}

fn pair(which: usize, c: usize) -> (Cache, Box<dyn Plain>) {
    match which {
        0 => (Cache::new(Policy::Lru, c), Box::new(Lru { c, list: Vec::new() })),
        1 => {
            let protected_max = (c as f64 * 0.8) as usize;
            let plain = Slru { c, protected_max, probation: Vec::new(), protected: Vec::new() };
            (Cache::new(Policy::SegmentedLru { protected: 0.8 }, c), Box::new(plain))
        }
        _ => (Cache::new(Policy::Arc, c), Box::new(ArcPaper { c, ..ArcPaper::default() })),
    }
}

fn same(which: usize, c: usize, requests: impl Iterator<Item = u64>) -> (u64, u64) {
    let (mut cache, mut plain) = pair(which, c);
    for (i, key) in requests.enumerate() {
        let (hit, left) = plain.access(key);
        let got = cache.access(key, false);
        assert_eq!(got.hit, hit, "policy {which}, request {i}");
        assert_eq!(got.evicted.map(|e| e.key), left, "policy {which}, request {i}");
        assert!(cache.len() <= c);
    }
    cache.counts()
}

#[test]
fn zipf_requests_miss_as_in_the_plain_implementations() {
    for which in 0..3 {
        for (exponent, c) in [(0.7, 50), (1.0, 200), (1.1, 7)] {
            let zipf = Zipf::new(2_000, exponent);
            let requests = (0..40_000).map(|request| zipf.at(which as u64, request));
            let (hits, misses) = same(which, c, requests);
            assert!(hits > 1_000 && misses > 1_000);
        }
    }
}

#[test]
fn scans_and_loops_miss_as_in_the_plain_implementations() {
    // The requests change between a hot set, one-time scans, and loops a little larger than the
    // cache. This mix changes ARC's ghost lists and its target most.
    for which in 0..3 {
        let mut stream = Stream::new(3, "scan");
        let mut scan = 1_000_000u64;
        let requests = (0..60_000u64).map(move |i| match i / 5_000 % 4 {
            0 => stream.below(60),
            1 => 10_000 + i % 130,
            2 => {
                scan += 1;
                scan
            }
            _ => stream.below(400),
        });
        same(which, 100, requests);
    }
}

proptest! {
    #[test]
    fn any_requests_miss_as_in_the_plain_implementations(
        which in 0usize..3,
        c in 1usize..12,
        requests in prop::collection::vec(0u64..30, 0..800),
    ) {
        same(which, c, requests.into_iter());
    }

    #[test]
    fn dirty_units_are_never_lost(
        which in 0usize..3,
        c in 1usize..10,
        requests in prop::collection::vec((0u64..25, any::<bool>(), 0u8..10), 0..500),
    ) {
        let (mut cache, _) = pair(which, c);
        let mut dirty = std::collections::BTreeSet::new();
        for (key, write, act) in requests {
            let access = cache.access(key, write);
            if let Some(e) = access.evicted {
                prop_assert_eq!(dirty.remove(&e.key), e.dirty);
            }
            if write {
                dirty.insert(key);
            }
            if act == 0 {
                let cleaned = cache.clean_oldest();
                prop_assert_eq!(cleaned.is_some(), !dirty.is_empty());
                if let Some(key) = cleaned {
                    prop_assert!(dirty.remove(&key));
                }
            }
            prop_assert_eq!(cache.dirty(), dirty.len());
        }
    }
}

/// Returns the hit ratio of LRU with `capacity` units in closed form. Unit `i` is requested with
/// probability `probabilities[i]`. See H. Che, Y. Tung and Z. Wang, "Hierarchical web caching
/// systems: modeling, design and experimental results", IEEE JSAC 20(7), 2002. C. Fricker, P.
/// Robert and J. Roberts explain its accuracy in "A versatile and accurate approximation for LRU
/// cache performance", ITC 24, 2012. With independent references, a unit stays in the cache for a
/// time `t` that is nearly the same for all units. Unit `i` therefore hits with probability `1 -
/// exp(-p_i t)`, where `t` solves `sum(1 - exp(-p_i t)) = capacity`.
fn lru_hit_ratio(probabilities: &[f64], capacity: f64) -> f64 {
    let held = |t: f64| -> f64 { probabilities.iter().map(|p| -libm::expm1(-p * t)).sum() };
    if capacity >= probabilities.len() as f64 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < capacity {
        high *= 2.0;
    }
    // Halving the interval 60 times determines `t` to 18 digits.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if held(middle) < capacity { low = middle } else { high = middle }
    }
    probabilities.iter().map(|p| p * -libm::expm1(-p * high)).sum()
}

#[test]
fn simulated_lru_agrees_within_one_percent() {
    for (exponent, n, capacity) in
        [(0.8, 20_000u64, 1_000usize), (1.0, 20_000, 200), (1.0, 20_000, 4_000), (1.2, 50_000, 500)]
    {
        let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-exponent)).collect();
        // Adds the smallest terms first, so that no digits are lost.
        let sum: f64 = weights.iter().rev().sum();
        let probabilities: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let expected = lru_hit_ratio(&probabilities, capacity as f64);
        let zipf = Zipf::new(n, exponent);
        let mut cache = Cache::new(Policy::Lru, capacity);
        for request in 0..100_000 {
            cache.access(zipf.at(5, request), false);
        }
        let (hits_before, misses_before) = cache.counts();
        for request in 100_000..1_100_000 {
            cache.access(zipf.at(5, request), false);
        }
        let (hits, misses) = cache.counts();
        let hits = (hits - hits_before) as f64;
        let got = hits / (hits + (misses - misses_before) as f64);
        assert!((got / expected - 1.0).abs() < 0.01, "{got} against {expected}");
    }
}
