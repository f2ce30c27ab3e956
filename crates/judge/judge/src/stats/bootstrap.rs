//! Circular block bootstrap: confidence intervals for any statistic of one run.
//!
//! D. N. Politis and J. P. Romano, *A Circular Block-Resampling Procedure for Stationary Data*
//! (1992). Resampling whole blocks preserves the autocorrelation within them. The length of a block
//! is `n^(1/3)` (P. Hall, J. L. Horowitz, B.-Y. Jing, Biometrika 82 (1995)) times the cube root of
//! the squared ratio of values to independent values.
//!
//! Use this method only within a run. If a percentile bootstrap is applied to the means of a few
//! runs, it reports a difference between two equal sides in 11 % of cases. Use [`super::welch`] to
//! compare two sides.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::autocorrelation::effective_sample;
use super::interval::{Interval, Refusal, require_finite};

/// Minimum number of values for resampling.
const VALUES_MIN: usize = 20;

/// Returns a percentile interval of `statistic` for the series of one run, computed from
/// `resamples` resamples.
///
/// The same seed gives the same interval on every machine. The `mean` of the interval is the
/// statistic of the series itself.
///
/// # Errors
/// [`Refusal::TooFewValues`] for fewer than 20 values, [`Refusal::OutOfRange`] for a confidence
/// outside 0..1 or fewer than 100 resamples, [`Refusal::NotFinite`].
pub fn block_bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Result<Interval, Refusal> {
    require_finite(values)?;
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Refusal::OutOfRange { name: "confidence", value: confidence });
    }
    if resamples < 100 {
        return Err(Refusal::OutOfRange { name: "number of resamples", value: resamples as f64 });
    }
    let n = values.len();
    if n < VALUES_MIN {
        return Err(Refusal::TooFewValues { n, needed: VALUES_MIN });
    }
    let n_effective = effective_sample(values);
    let block = block_length(n, n_effective);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut resample = vec![0.0; n];
    let mut statistics: Vec<f64> = (0..resamples)
        .map(|_| {
            for chunk in resample.chunks_mut(block) {
                let start = below(&mut rng, n);
                for (offset, slot) in chunk.iter_mut().enumerate() {
                    *slot = values[(start + offset) % n];
                }
            }
            statistic(&resample)
        })
        .collect();
    statistics.sort_unstable_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - confidence);
    let at = |p: f64| statistics[libm::round(p * (resamples - 1) as f64) as usize];
    let (low, high) = (at(tail), at(1.0 - tail));
    let half_width = 0.5 * (high - low);
    Ok(Interval { mean: statistic(values), low, high, half_width, n, n_effective })
}

/// Returns the block length for a series of `n` values that is equivalent to `n_effective`
/// independent values.
fn block_length(n: usize, n_effective: f64) -> usize {
    let worth = (n as f64 / n_effective.max(1.0)).max(1.0);
    let length = libm::cbrt(n as f64) * libm::pow(worth, 2.0 / 3.0);
    (libm::ceil(length) as usize).clamp(1, n / 4)
}

/// Returns a uniform number in `0..n`. The bias is negligible: `n` is below 2^32.
fn below(rng: &mut Xoshiro256PlusPlus, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values: Vec<f64> = (0..200).map(|i| libm::sin(f64::from(i * i))).collect();
        let one = block_bootstrap(&values, average, 0.95, 500, 7).unwrap();
        assert_eq!(one, block_bootstrap(&values, average, 0.95, 500, 7).unwrap());
        assert_ne!(one, block_bootstrap(&values, average, 0.95, 500, 8).unwrap());
        assert!(one.low < one.mean && one.mean < one.high);
    }

    #[test]
    fn dependence_lengthens_blocks() {
        assert_eq!(block_length(1000, 1000.0), 10);
        assert_eq!(block_length(1000, 125.0), 40);
        assert_eq!(block_length(1000, 0.1), 250);
    }

    #[test]
    fn wrong_use_is_refused() {
        assert!(block_bootstrap(&[1.0; 19], average, 0.95, 500, 1).is_err());
        assert!(block_bootstrap(&[1.0; 40], average, 1.5, 500, 1).is_err());
        assert!(block_bootstrap(&[1.0; 40], average, 0.95, 10, 1).is_err());
    }
}
