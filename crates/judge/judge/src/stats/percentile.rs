//! Percentiles with confidence intervals from order statistics, and the minimum number of samples
//! for a percentile.
//!
//! The number of samples below the true p-quantile is binomial for any distribution. Two order
//! statistics therefore bracket the quantile with a known probability (H. A. David and H. N.
//! Nagaraja, *Order Statistics*, 3rd ed. 2003, section 7.1). If samples are not independent, the
//! binomial distribution uses the effective sample size.
//!
//! A percentile is shown only if `n_effective (1 - p)` is at least 10: at least ten effective
//! samples are above it. A p99.9 of 2,000 samples would depend on the two slowest samples.

use super::interval::Refusal;
use super::special::{binomial_cdf, normal_quantile};

/// Minimum number of effective samples above a percentile.
pub const BEYOND_MIN: f64 = 10.0;

/// Checks whether `n_effective` samples are enough for the `p`-quantile (0.99 for p99).
///
/// # Errors
/// [`Refusal::OutOfRange`] if `p` is not within 0..1. [`Refusal::EffectiveSampleTooSmall`] with the
/// required number if fewer than ten samples are above the percentile.
pub fn percentile_gate(n: usize, n_effective: f64, p: f64) -> Result<(), Refusal> {
    if !(p > 0.0 && p < 1.0) {
        return Err(Refusal::OutOfRange { name: "percentile", value: p });
    }
    // 1 - 0.99 is slightly below 0.01. Without this tolerance, 1,000 samples would not be enough
    // for a p99.
    let beyond = n_effective * (1.0 - p) * (1.0 + 1e-12);
    if beyond >= BEYOND_MIN {
        return Ok(());
    }
    let needed = libm::ceil(BEYOND_MIN / ((1.0 - p) * (1.0 + 1e-12))) as usize;
    Err(Refusal::EffectiveSampleTooSmall { n, n_effective, needed })
}

/// Ranks of a quantile and of the ends of its interval among `n` sorted samples, counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ranks {
    /// Rank of the lower end of the interval.
    pub low: u64,
    /// Rank of the quantile itself, `ceil(p n)`.
    pub at: u64,
    /// Rank of the upper end of the interval.
    pub high: u64,
}

/// Returns the ranks of two samples that enclose the `p`-quantile with a probability of at least
/// `confidence`.
///
/// If `n_effective` is below `n`, the interval becomes wider: the binomial distribution uses the
/// effective sample size, and its ranks are scaled to `n`. The error probability at each end is at
/// most half of the total, so the interval is conservative for small samples. The ranks can be
/// looked up in the cumulative counts of a histogram, without the samples themselves.
///
/// # Errors
/// The errors of [`percentile_gate`], and [`Refusal::OutOfRange`] if `confidence` is not within
/// 0..1.
pub fn quantile_ranks(n: u64, n_effective: f64, p: f64, confidence: f64) -> Result<Ranks, Refusal> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Refusal::OutOfRange { name: "confidence", value: confidence });
    }
    let n_effective = n_effective.min(n as f64);
    percentile_gate(n as usize, n_effective, p)?;
    let trials = libm::floor(n_effective) as u64;
    let tail = 0.5 * (1.0 - confidence);
    // The sample of rank l is at most the quantile, unless fewer than l samples are below the
    // quantile.
    let low = binomial_rank(trials, p, tail);
    let high = binomial_rank(trials, p, 1.0 - tail) + 1;
    let scale = n as f64 / trials as f64;
    let rank = |r: f64| (r.max(1.0) as u64).clamp(1, n);
    Ok(Ranks {
        low: rank(libm::floor(low as f64 * scale)),
        at: rank(libm::ceil(p * n as f64 * (1.0 - 1e-15))),
        high: rank(libm::ceil(high as f64 * scale)),
    })
}

/// Returns the smallest `k` with `P(X <= k) >= probability`, for binomial `X`.
fn binomial_rank(trials: u64, p: f64, probability: f64) -> u64 {
    let n = trials as f64;
    let guess = n * p + normal_quantile(probability) * libm::sqrt(n * p * (1.0 - p));
    let mut k = (guess.max(0.0) as u64).min(trials);
    // The normal approximation may be wrong by one or two ranks. The loop searches for the exact
    // rank.
    while k > 0 && binomial_cdf(k - 1, trials, p) >= probability {
        k -= 1;
    }
    while binomial_cdf(k, trials, p) < probability {
        k += 1;
    }
    k
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_samples_beyond_are_enough_and_nine_are_not() {
        assert_eq!(percentile_gate(1000, 1000.0, 0.99), Ok(()));
        assert_eq!(percentile_gate(10_000, 10_000.0, 0.999), Ok(()));
        let refused = percentile_gate(999, 999.0, 0.99).unwrap_err();
        assert!(matches!(refused, Refusal::EffectiveSampleTooSmall { needed: 1000, .. }));
        // A hundred thousand samples with an effective sample size of five hundred are not enough
        // for a p99.
        assert!(percentile_gate(100_000, 500.0, 0.99).is_err());
        assert!(matches!(percentile_gate(10, 10.0, 1.0), Err(Refusal::OutOfRange { .. })));
    }

    #[test]
    fn the_median_of_a_hundred_lies_between_the_tabulated_ranks() {
        // In published tables, the 95 % interval for the median of 100 samples has the ranks 40 and
        // 61.
        let ranks = quantile_ranks(100, 100.0, 0.5, 0.95).unwrap();
        assert_eq!((ranks.low, ranks.at, ranks.high), (40, 50, 61));
    }

    #[test]
    fn fewer_effective_samples_widen_the_interval() {
        let free = quantile_ranks(10_000, 10_000.0, 0.5, 0.95).unwrap();
        let bound = quantile_ranks(10_000, 100.0, 0.5, 0.95).unwrap();
        assert!(bound.low < free.low && bound.high > free.high);
        assert_eq!((bound.low, bound.high), (4000, 6100));
    }

    #[test]
    fn a_billion_samples_are_quick_and_tight() {
        let ranks = quantile_ranks(1_000_000_000, 1e9, 0.999, 0.95).unwrap();
        assert_eq!(ranks.at, 999_000_000);
        // In the normal approximation, the half width is 1.96 sqrt(n p q) = 1959 ranks.
        assert!(ranks.at - ranks.low < 1962 && ranks.high - ranks.at < 1962, "{ranks:?}");
    }
}
