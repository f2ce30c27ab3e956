//! Chooses at random among alternatives. Each alternative has a given share of the choices.
//!
//! The choice uses stratified sampling. The unit interval is divided into 1,024 parts. In a round
//! of 1,024 consecutive choices, each choice is a random point in a different part. A permutation
//! determines the order of the parts in each round. After any number of choices, the frequency of
//! each alternative therefore equals its share to about 1/1,024. Earlier choices do not make a
//! later choice predictable, except that no part occurs twice in a round. (Independent choices
//! could differ from the shares by 1 % after 10,000 choices.)

use crate::address::{Permutation, mix, share_below};

const STRATA_BITS: u32 = 10;
const STRATA: u64 = 1 << STRATA_BITS;

/// Chooses among alternatives according to their shares.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The alternative that is always chosen, if all other alternatives have the weight 0;
    /// otherwise `None`.
    only: Option<u32>,
    /// Upper ends of the ranges of all alternatives except the last. The numbers from 0 to 2^64 are
    /// divided into one range for each alternative.
    ends: Box<[u64]>,
    seed: u64,
    index: u64,
    order: Permutation,
}

impl Choice {
    /// Creates alternatives with the given weights. The sum of the weights may be any number. A
    /// weight that is negative or not a number is treated as 0. If all weights are 0, the first
    /// alternative is always chosen.
    #[must_use]
    pub fn new(weights: &[f64], seed: u64) -> Self {
        let weight = |w: &f64| if *w > 0.0 && w.is_finite() { *w } else { 0.0 };
        let total: f64 = weights.iter().map(weight).sum();
        let mut sum = 0.0;
        let mut ends: Vec<f64> = weights
            .iter()
            .map(|w| {
                sum += weight(w);
                if total > 0.0 { sum / total } else { 1.0 }
            })
            .collect();
        // Because of rounding errors, the sum may be slightly below 1. Alternatives at the end of
        // the list whose weight is 0 must still never be chosen.
        if let Some(last) = weights.iter().rposition(|w| weight(w) > 0.0) {
            ends.truncate(last + 1);
        } else {
            ends.truncate(1);
        }
        let possible = |at: &usize| weights.get(*at).is_some_and(|w| weight(w) > 0.0);
        let mut possible = (0..ends.len()).filter(possible);
        let only = match (possible.next(), possible.next()) {
            (None, _) => Some(0),
            (Some(only), None) => Some(only as u32),
            _ => None,
        };
        let ends = ends.into_iter().map(share_below).collect();
        Self { only, ends, seed, index: 0, order: Permutation::new(STRATA, mix(seed, 0)) }
    }

    /// Creates a choice between `true`, with a share of `percent`, and `false`.
    #[must_use]
    pub fn percent(percent: f64, seed: u64) -> Self {
        let percent = if percent > 0.0 { percent.min(100.0) } else { 0.0 };
        Self::new(&[100.0 - percent, percent], seed)
    }

    /// Returns the number of the alternative that is chosen next.
    #[inline]
    pub fn take(&mut self) -> usize {
        match self.only {
            Some(only) => only as usize,
            None => self.choose(),
        }
    }

    fn choose(&mut self) -> usize {
        let within = self.index % STRATA;
        if within == 0 && self.index > 0 {
            self.order = Permutation::new(STRATA, mix(self.seed, self.index));
        }
        let jitter = mix(!self.seed, self.index) >> STRATA_BITS;
        self.index += 1;
        let x = self.order.at(within) << (u64::BITS - STRATA_BITS) | jitter;
        // If there are only a few alternatives, the function counts the ends that are not above
        // `x`, because this needs no branch.
        let below = self.ends.iter().map(|end| usize::from(x >= *end)).sum::<usize>();
        below.min(self.ends.len() - 1)
    }

    /// Returns the next result of a choice that [`Choice::percent`] created.
    #[inline]
    pub fn next_is(&mut self) -> bool {
        self.take() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A share can be wrong for two reasons. The limits of an alternative's range may be inside
        /// a stratum, and the last round is not complete.
        #[test]
        fn shares_are_exact_to_a_few_strata(
            weights in prop::collection::vec(0.0f64..100.0, 1..9),
            seed: u64,
            blocks in 1u64..20,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let mut choice = Choice::new(&weights, seed);
            let mut counts = vec![0u64; weights.len()];
            for _ in 0..blocks * STRATA {
                counts[choice.take()] += 1;
            }
            for (count, weight) in counts.iter().zip(&weights) {
                let required = weight / total * (blocks * STRATA) as f64;
                prop_assert!((*count as f64 - required).abs() <= 2.0 * blocks as f64);
            }
        }
    }

    /// After 10,000 choices, the share differs from 70 % by at most 0.25 %. Independent choices
    /// would have a standard error of 0.46 %.
    #[test]
    fn seventy_percent_is_met() {
        for seed in 0..50 {
            let mut choice = Choice::percent(70.0, seed);
            let reads = (0..10_000).filter(|_| choice.next_is()).count();
            assert!(reads.abs_diff(7_000) <= 25, "{reads}");
        }
    }

    /// The order is random. The test counts the runs of equal choices and compares their number
    /// with the number in a random sequence. For such a sequence (Wald and Wolfowitz, 1940), the
    /// mean is 1 + 2 n p (1 - p), and the standard deviation is about 2 p (1 - p) sqrt n.
    #[test]
    fn the_order_is_random() {
        for seed in 0..20 {
            let mut choice = Choice::percent(30.0, seed);
            let all: Vec<bool> = (0..20_480).map(|_| choice.next_is()).collect();
            let runs = 1 + all.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let (mean, deviation) = (20_480.0 * 0.42 + 1.0, 0.42 * 20_480f64.sqrt());
            assert!((runs as f64 - mean).abs() < 4.0 * deviation, "{runs}");
        }
    }

    #[test]
    fn nothing_without_weight_is_chosen() {
        let mut choice = Choice::new(&[0.0, 1.0, f64::NAN, 3.0, -1.0, 0.0], 1);
        assert!((0..5_000).map(|_| choice.take()).all(|thing| thing == 1 || thing == 3));
        assert_eq!(Choice::new(&[], 1).take(), 0);
        assert_eq!(Choice::new(&[0.0, 0.0], 1).take(), 0);
        assert!((0..100).all(|seed| Choice::percent(100.0, seed).next_is()));
        assert!((0..100).all(|seed| !Choice::percent(0.0, seed).next_is()));
    }
}
