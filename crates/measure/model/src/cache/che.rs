//! The hit ratio of an LRU cache in closed form.
//!
//! H. Che, Y. Tung and Z. Wang, "Hierarchical web caching systems: modeling, design and
//! experimental results", IEEE JSAC 20(7), 2002; the reason for its accuracy: C. Fricker, P. Robert
//! and J. Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 24,
//! 2012. With independent references, a unit stays in the cache for a time `t` that is nearly the
//!       same for all units.
//! Unit `i` therefore hits with probability `1 - exp(-p_i t)`, where `t` solves `sum(1 - exp(-p_i
//! t)) = capacity`.

/// Returns the hit ratio of LRU with `capacity` units if unit `i` is requested with probability
/// `probabilities[i]`.
pub fn lru_hit_ratio(probabilities: &[f64], capacity: f64) -> f64 {
    let held = |t: f64| -> f64 { probabilities.iter().map(|p| -libm::expm1(-p * t)).sum() };
    if capacity >= probabilities.len() as f64 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < capacity {
        high *= 2.0;
    }
    // 60 halvings determine the time to the last bit of its first 18 digits.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if held(middle) < capacity { low = middle } else { high = middle }
    }
    probabilities.iter().map(|p| p * -libm::expm1(-p * high)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache, Policy};
    use plimsoll_workload::address::Zipf;

    #[test]
    fn simulated_lru_agrees_within_one_percent() {
        for (exponent, n, capacity) in [
            (0.8, 20_000u64, 1_000usize),
            (1.0, 20_000, 200),
            (1.0, 20_000, 4_000),
            (1.2, 50_000, 500),
        ] {
            let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-exponent)).collect();
            // The smallest first, so that no digits are lost.
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
}
