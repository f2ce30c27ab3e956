//! Distance between two distributions: the two-sample test of Kolmogorov and Smirnov.
//!
//! N. V. Smirnov, *Table for Estimating the Goodness of Fit of Empirical Distributions*, Annals of
//! Mathematical Statistics 19 (1948). The p-value is the limit for large samples with the effective
//! sizes. This is conservative for small and for discrete samples.

use super::interval::{Refusal, require_finite};
use super::special::kolmogorov_survival;

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// Largest vertical distance of the two distribution functions, 0 to 1.
    pub distance: f64,
    /// Probability of a distance at least this large if the distributions are the same.
    pub p_value: f64,
}

/// Compares two samples, in any order.
///
/// # Errors
/// [`Refusal::TooFewValues`] for an empty sample, [`Refusal::NotFinite`].
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Result<KolmogorovSmirnov, Refusal> {
    require_finite(a)?;
    require_finite(b)?;
    if a.is_empty() || b.is_empty() {
        return Err(Refusal::TooFewValues { n: a.len().min(b.len()), needed: 1 });
    }
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.sort_unstable_by(f64::total_cmp);
    b.sort_unstable_by(f64::total_cmp);
    let (mut i, mut j, mut distance) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        // Skips equal values on both sides before computing the distance.
        while i < a.len() && a[i] <= value {
            i += 1;
        }
        while j < b.len() && b[j] <= value {
            j += 1;
        }
        distance = distance.max((share(i, a.len()) - share(j, b.len())).abs());
    }
    Ok(KolmogorovSmirnov { distance, p_value: p_value(distance, a.len() as f64, b.len() as f64) })
}

/// Compares two histograms over the same bins, given as counts.
///
/// Each bin counts as one value, so the distance is at most the distance of the original samples.
/// The p-value uses the effective sizes; pass the counts' sums if values are independent.
///
/// # Errors
/// [`Refusal::TooFewValues`] if a histogram is empty; [`Refusal::OutOfRange`] if they have
/// different numbers of bins.
pub fn kolmogorov_smirnov_bins(
    a: &[u64],
    b: &[u64],
    a_effective: f64,
    b_effective: f64,
) -> Result<KolmogorovSmirnov, Refusal> {
    if a.len() != b.len() {
        return Err(Refusal::OutOfRange { name: "number of bins", value: b.len() as f64 });
    }
    let (a_total, b_total): (u64, u64) = (a.iter().sum(), b.iter().sum());
    if a_total == 0 || b_total == 0 {
        return Err(Refusal::TooFewValues { n: 0, needed: 1 });
    }
    let (mut a_sum, mut b_sum, mut distance) = (0, 0, 0.0_f64);
    for (a_count, b_count) in a.iter().zip(b) {
        a_sum += a_count;
        b_sum += b_count;
        let gap = a_sum as f64 / a_total as f64 - b_sum as f64 / b_total as f64;
        distance = distance.max(gap.abs());
    }
    Ok(KolmogorovSmirnov { distance, p_value: p_value(distance, a_effective, b_effective) })
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn p_value(distance: f64, a: f64, b: f64) -> f64 {
    kolmogorov_survival(distance * libm::sqrt(a * b / (a + b))).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_does_not_differ_from_itself_and_wholly_from_another() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let same = kolmogorov_smirnov(&values, &values).unwrap();
        assert_eq!((same.distance, same.p_value), (0.0, 1.0));
        let far: Vec<f64> = values.iter().map(|v| v + 1000.0).collect();
        let other = kolmogorov_smirnov(&values, &far).unwrap();
        assert!(other.distance == 1.0 && other.p_value < 1e-20);
    }

    #[test]
    fn histograms_give_the_distance_of_their_samples() {
        let a = [0.0, 0.0, 1.0, 2.0];
        let b = [1.0, 2.0, 2.0, 2.0];
        let samples = kolmogorov_smirnov(&a, &b).unwrap();
        let bins = kolmogorov_smirnov_bins(&[2, 1, 1], &[0, 1, 3], 4.0, 4.0).unwrap();
        assert_eq!(samples, bins);
        assert_eq!(samples.distance, 0.5);
        assert!(kolmogorov_smirnov_bins(&[0], &[1], 1.0, 1.0).is_err());
        assert!(kolmogorov_smirnov_bins(&[1, 1], &[1], 2.0, 1.0).is_err());
    }
}
