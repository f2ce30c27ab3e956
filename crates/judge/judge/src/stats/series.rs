//! Steady part of a whole time series: the start of the steady level, and the mean from there.

use super::batch::batch_means_at;
use super::interval::{Interval, Refusal};
use super::warm_up::settled_from;

/// Mean of the settled part of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyMean {
    /// First value that counts, from 0: the end of the warm-up.
    pub start: usize,
    /// Mean of the values from there on, with its interval.
    pub interval: Interval,
}

/// Cuts the warm-up and returns the mean of the remaining values with its 95 % interval.
///
/// # Errors
/// The errors of [`settled_from`] and [`batch_means`](super::batch_means): the series never
/// settled, or the effective sample of its settled part is below ten.
pub fn steady_mean(values: &[f64]) -> Result<SteadyMean, Refusal> {
    steady_mean_at(values, 0.95)
}

/// Returns the same as [`steady_mean`] with another confidence than 0.95.
///
/// # Errors
/// The errors of [`steady_mean`], and [`Refusal::OutOfRange`] if `confidence` is not within 0..1.
pub fn steady_mean_at(values: &[f64], confidence: f64) -> Result<SteadyMean, Refusal> {
    let start = settled_from(values)?;
    Ok(SteadyMean { start, interval: batch_means_at(&values[start..], confidence)? })
}
