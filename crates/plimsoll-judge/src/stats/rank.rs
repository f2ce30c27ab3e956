//! The exact rank test of two samples: Mann-Whitney.
//!
//! H. B. Mann and D. R. Whitney, *On a Test of Whether one of Two Random Variables is
//! Stochastically Larger than the Other*, Annals of Mathematical Statistics 18 (1947). A second
//! opinion beside Welch's test, which it can't replace: with five runs each it has only 126 values
//! of p. The exact distribution is that of all partitions of the pooled values, ties included
//! (their mid-ranks are permuted), so no correction is needed.

use super::interval::{Refusal, require_finite};

/// Most pairs (`a.len() * b.len()`) for which the distribution is enumerated.
const PAIRS_MAX: usize = 10_000;

/// Result of the rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Pairs in which the value of `a` is the larger, a tie counting a half.
    pub u: f64,
    /// Exact two-sided p-value.
    pub p_value: f64,
}

/// Tests whether values of one sample tend to be larger than those of the other.
///
/// # Errors
/// [`Refusal::TooFewValues`] for an empty sample, [`Refusal::NotFinite`],
/// [`Refusal::OutOfRange`] with more than 10,000 pairs.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Result<RankTest, Refusal> {
    require_finite(a)?;
    require_finite(b)?;
    if a.is_empty() || b.is_empty() {
        return Err(Refusal::TooFewValues { n: a.len().min(b.len()), needed: 1 });
    }
    if a.len() * b.len() > PAIRS_MAX {
        return Err(Refusal::OutOfRange {
            name: "number of pairs",
            value: (a.len() * b.len()) as f64,
        });
    }
    let ranks = doubled_ranks(a, b);
    let own: usize = ranks[..a.len()].iter().sum();
    let ways = rank_sums(&ranks, a.len());
    let total: f64 = ways.iter().sum();
    // Both tails as far from the middle as the one that was seen.
    let middle = a.len() * (a.len() + b.len() + 1);
    let distance = own.abs_diff(middle);
    let extreme: f64 = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(middle) >= distance)
        .map(|(_, count)| count)
        .sum();
    let least = (a.len() * (a.len() + 1)) as f64 / 2.0;
    Ok(RankTest { u: own as f64 / 2.0 - least, p_value: (extreme / total).min(1.0) })
}

/// Twice the mid-ranks, so that they are integers: of `a` first, then of `b`.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    pooled
        .iter()
        .map(|value| {
            let below = pooled.iter().filter(|other| *other < value).count();
            let equal = pooled.iter().filter(|other| *other == value).count();
            2 * below + equal + 1
        })
        .collect()
}

/// For each sum of doubled ranks, how many choices of `size` of them have it.
fn rank_sums(ranks: &[usize], size: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; size + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for chosen in (0..size).rev() {
            let (fewer, more) = ways.split_at_mut(chosen + 1);
            for sum in rank..=most {
                more[0][sum] += fewer[chosen][sum - rank];
            }
        }
    }
    ways.swap_remove(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_separation_has_the_smallest_p_there_is() {
        for (runs, p) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let a: Vec<f64> = (0..runs).map(f64::from).collect();
            let b: Vec<f64> = (0..runs).map(|i| f64::from(i) + 100.0).collect();
            let test = mann_whitney(&a, &b).unwrap();
            assert!((test.p_value - p).abs() < 1e-14 && test.u == 0.0, "{test:?}");
            assert_eq!(mann_whitney(&b, &a).unwrap().u, f64::from(runs * runs));
        }
    }

    #[test]
    fn equal_samples_do_not_differ() {
        let test = mann_whitney(&[1.0; 5], &[1.0; 5]).unwrap();
        assert_eq!((test.u, test.p_value), (12.5, 1.0));
    }

    #[test]
    fn empty_and_huge_samples_are_refused() {
        assert!(matches!(mann_whitney(&[], &[1.0]), Err(Refusal::TooFewValues { .. })));
        assert!(matches!(mann_whitney(&[1.0; 101], &[1.0; 100]), Err(Refusal::OutOfRange { .. })));
    }
}
