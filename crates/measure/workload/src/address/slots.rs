//! Computes the slots `0..n` in the order of an access pattern.

use plimsoll_plan::Pattern;

use super::hash::{mix, uniform_below};
use super::{HotCold, Normal, Permutation, Stride, Zipf};

/// Slots `0..n` in the order of a pattern. A slot is a pure function of the seed and the index.
#[derive(Clone, Debug)]
pub struct Slots {
    n: u64,
    seed: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Random,
    /// Permutation of the pass that was requested last. It is a cache and does not affect the
    /// results.
    Permutation {
        pass: u64,
        order: Permutation,
    },
    Sequential,
    Strided(Stride),
    Zipf {
        ranks: Zipf,
        scatter: Permutation,
    },
    HotCold(HotCold),
    Normal(Normal),
}

/// Constant that is mixed into the seed. Because of it, the permutation of the ranks has another
/// seed than the ranks.
const SCATTER: u64 = 0x5CA7;

impl Slots {
    /// Creates the slots `0..n` in the order of `pattern`. A stride pattern states its distance in
    /// bytes. This function converts the distance to slots of `slot_bytes`. An `n` of 0 is treated
    /// as 1.
    #[must_use]
    pub fn new(pattern: &Pattern, n: u64, slot_bytes: u64, seed: u64) -> Self {
        let n = n.max(1);
        let kind = match *pattern {
            // A trace contains its own addresses, so it needs no slots.
            Pattern::Random | Pattern::Trace => Kind::Random,
            Pattern::Permutation => {
                Kind::Permutation { pass: 0, order: Permutation::new(n, mix(seed, 0)) }
            }
            // [`super::AddressWalks`] determines how many slots are skipped.
            Pattern::Sequential | Pattern::SequentialShared | Pattern::Skipping { .. } => {
                Kind::Sequential
            }
            Pattern::Strided { stride_bytes } => {
                Kind::Strided(Stride::new(n, stride_bytes / slot_bytes.max(1)))
            }
            Pattern::Zipf { exponent } => Kind::Zipf {
                ranks: Zipf::new(n, exponent),
                scatter: Permutation::new(n, mix(seed, SCATTER)),
            },
            Pattern::HotCold { hot_space, hot_access } => {
                Kind::HotCold(HotCold::new(n, hot_space, hot_access))
            }
            Pattern::Normal { deviation } => Kind::Normal(Normal::new(n, deviation)),
        };
        Self { n, seed, kind }
    }

    /// Returns the slot of the operation with this index.
    #[inline]
    pub fn at(&mut self, index: u64) -> u64 {
        match &mut self.kind {
            Kind::Random => uniform_below(mix(self.seed, index), self.n),
            Kind::Permutation { pass, order } => {
                let this_pass = index / self.n;
                if this_pass != *pass {
                    *pass = this_pass;
                    *order = Permutation::new(self.n, mix(self.seed, this_pass));
                }
                order.at(index - this_pass * self.n)
            }
            Kind::Sequential => index % self.n,
            Kind::Strided(stride) => stride.at(index),
            Kind::Zipf { ranks, scatter } => scatter.at(ranks.at(self.seed, index)),
            Kind::HotCold(parts) => parts.at(self.seed, index),
            Kind::Normal(bell) => bell.at(self.seed, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Pattern; 8] {
        [
            Pattern::Random,
            Pattern::Permutation,
            Pattern::Sequential,
            Pattern::SequentialShared,
            Pattern::Strided { stride_bytes: 65_536 },
            Pattern::Zipf { exponent: 1.1 },
            Pattern::HotCold { hot_space: 0.2, hot_access: 0.8 },
            Pattern::Normal { deviation: 0.1 },
        ]
    }

    #[test]
    fn the_same_seed_gives_the_same_slots_in_any_order() {
        for pattern in all() {
            let mut forward = Slots::new(&pattern, 1_000, 4096, 9);
            let mut backward = Slots::new(&pattern, 1_000, 4096, 9);
            let ahead: Vec<u64> = (0..3_000).map(|i| forward.at(i)).collect();
            let mut back: Vec<u64> = (0..3_000).rev().map(|i| backward.at(i)).collect();
            back.reverse();
            assert_eq!(ahead, back, "{pattern:?}");
            assert!(ahead.iter().all(|slot| *slot < 1_000));
        }
    }

    #[test]
    fn another_seed_gives_other_slots() {
        for pattern in all() {
            let (mut a, mut b) =
                (Slots::new(&pattern, 1 << 30, 4096, 1), Slots::new(&pattern, 1 << 30, 4096, 2));
            let same = (0..1_000).filter(|i| a.at(*i) == b.at(*i)).count();
            let is_ordered = matches!(
                pattern,
                Pattern::Sequential | Pattern::SequentialShared | Pattern::Strided { .. }
            );
            assert!(if is_ordered { same == 1_000 } else { same < 30 }, "{pattern:?}: {same}");
        }
    }

    #[test]
    fn each_pass_of_a_permutation_visits_each_slot_once_in_another_order() {
        let mut slots = Slots::new(&Pattern::Permutation, 777, 4096, 3);
        let mut orders = Vec::new();
        for pass in 0..3 {
            let order: Vec<u64> = (0..777).map(|i| slots.at(pass * 777 + i)).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..777));
            orders.push(order);
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    }

    /// The chi-square test has 100 cells. With 99 degrees of freedom, the 99.9 % quantile is 148.2.
    #[test]
    fn random_is_uniform() {
        let mut slots = Slots::new(&Pattern::Random, 1 << 40, 4096, 11);
        let mut counts = [0f64; 100];
        for i in 0..100_000 {
            counts[((slots.at(i) as u128 * 100) >> 40) as usize] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 148.2, "{chi}");
    }

    /// Within the hot part and within the cold part, all slots have the same probability. The
    /// chi-square test uses 10 cells for each part. With 9 degrees of freedom, the 99.9 % quantile
    /// is 27.9. The number of accesses to each part is as expected, to within three standard
    /// errors.
    #[test]
    fn hot_and_cold_get_their_shares() {
        let pattern = Pattern::HotCold { hot_space: 0.1, hot_access: 0.9 };
        let mut slots = Slots::new(&pattern, 1_000_000, 4096, 5);
        let (mut hot, mut cold) = ([0f64; 10], [0f64; 10]);
        for i in 0..100_000u64 {
            let slot = slots.at(i);
            if slot < 100_000 {
                hot[(slot / 10_000) as usize] += 1.0;
            } else {
                cold[((slot - 100_000) / 90_000) as usize] += 1.0;
            }
        }
        let (in_hot, in_cold): (f64, f64) = (hot.iter().sum(), cold.iter().sum());
        assert!((in_hot / 100_000.0 - 0.9).abs() < 3.0 * (0.09f64 / 100_000.0).sqrt());
        for (part, sum) in [(hot, in_hot), (cold, in_cold)] {
            let chi: f64 = part.iter().map(|c| (c - sum / 10.0).powi(2) / (sum / 10.0)).sum();
            assert!(chi < 27.9, "{chi}");
        }
    }

    /// If ranks are scattered over the space, they keep their Zipf probabilities. The most frequent
    /// slot gets the fraction of operations that the first rank would get.
    #[test]
    fn zipf_is_scattered_but_keeps_its_shares() {
        let mut slots = Slots::new(&Pattern::Zipf { exponent: 1.0 }, 1_000, 4096, 5);
        let mut counts = vec![0u32; 1_000];
        for i in 0..100_000 {
            counts[slots.at(i) as usize] += 1;
        }
        let hottest = counts.iter().enumerate().max_by_key(|(_, c)| **c).unwrap();
        let harmonic: f64 = (1..=1_000).map(|k| 1.0 / f64::from(k)).sum();
        let share = f64::from(*hottest.1) / 100_000.0;
        assert!((share - 1.0 / harmonic).abs() < 0.004, "{share}");
        let ordered = counts.windows(2).filter(|w| w[0] >= w[1]).count();
        assert!((400..600).contains(&ordered), "ranks lie in order: {ordered}");
    }
}
