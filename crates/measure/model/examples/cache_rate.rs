//! Measures the speed of the caches on this machine: requests per second of wall time, for 20
//! million Zipf(1.0) requests to a million units. The cache has space for a tenth of the units.
//!
//! `cargo run --release -p plimsoll-model --example cache_rate`

use plimsoll_model::cache::{Cache, Policy};
use plimsoll_workload::address::Zipf;
use std::time::Instant;

fn main() {
    let zipf = Zipf::new(1_000_000, 1.0);
    let requests: Vec<u64> = (0..20_000_000).map(|request| zipf.at(1, request)).collect();
    for (name, policy) in [
        ("LRU", Policy::Lru),
        ("segmented LRU", Policy::SegmentedLru { protected: 0.8 }),
        ("ARC", Policy::Arc),
    ] {
        for capacity in [10_000, 100_000] {
            let mut cache = Cache::new(policy, capacity);
            let started = Instant::now();
            for &key in &requests {
                cache.access(key, false);
            }
            let seconds = started.elapsed().as_secs_f64();
            let (hits, misses) = cache.counts();
            println!(
                "{name}, {capacity} units: {:.1} M requests/s, miss ratio {:.4}",
                requests.len() as f64 / seconds / 1e6,
                misses as f64 / (hits + misses) as f64
            );
        }
    }
}
