//! Estimate with its uncertainty, or the reason why no estimate is possible.

use thiserror::Error;

/// Mean with its confidence interval, in the unit of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Estimate.
    pub mean: f64,
    /// Lower end of the confidence interval.
    pub low: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
    /// Half of `high - low`, even if the interval is not symmetric around the mean (as for a
    /// ratio).
    pub half_width: f64,
    pub n: usize,
    /// Number of independent values that would give an equally precise mean.
    pub n_effective: f64,
}

impl Interval {
    /// Creates a symmetric interval around `mean`.
    #[must_use]
    pub fn symmetric(mean: f64, half_width: f64, n: usize, n_effective: f64) -> Self {
        let (low, high) = (mean - half_width, mean + half_width);
        Self { mean, low, high, half_width, n, n_effective }
    }

    /// Returns true if the interval includes `value`. The interval includes its ends.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the half width divided by the absolute mean. The result is infinite if the mean is
    /// zero and the half width is above zero.
    #[must_use]
    pub fn relative_half_width(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.mean.abs() }
    }
}

/// Reason why a statistic cannot be computed: the data is not sufficient.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// The method requires more values.
    #[error("{n} values are too few for this statistic, which requires {needed}: measure longer")]
    TooFewValues {
        /// Number of values in the series.
        n: usize,
        /// Number of values required.
        needed: usize,
    },
    /// Neighbouring values are too strongly correlated.
    #[error(
        "{n} values are equivalent to only {n_effective:.1} independent values, but {needed} are \
         needed: the values change too slowly for this short measurement; measure longer"
    )]
    EffectiveSampleTooSmall {
        /// Number of values in the series.
        n: usize,
        /// Number of independent values that would give an equally precise mean, at the lower end
        /// of its range.
        n_effective: f64,
        /// Number of independent values required.
        needed: usize,
    },
    /// A value is infinite or not a number.
    #[error("value {index} of the series is not finite: the evidence is damaged")]
    NotFinite {
        /// Position of the first value that is not finite, from 0.
        index: usize,
    },
    /// The method requires positive values.
    #[error("value {index} of the series is not above zero, but its logarithm is required")]
    NotPositive {
        /// Position of the first value that is not above zero, from 0.
        index: usize,
    },
    #[error(
        "the warm-up ends at value {cut} of {n}, so it takes at least half of the series: the \
         system had not settled; measure longer"
    )]
    WarmUpTooLong {
        /// Position of the first value after the warm-up, from 0.
        cut: usize,
        /// Number of values in the series.
        n: usize,
    },
    /// A parameter of the method is outside its range.
    #[error("{name} is {value}, which is outside the allowed range")]
    OutOfRange {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: f64,
    },
}

/// Rejects a series that contains an infinity or a NaN.
///
/// # Errors
/// [`Refusal::NotFinite`] with the position of the first value that is not finite.
pub fn require_finite(values: &[f64]) -> Result<(), Refusal> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(Refusal::NotFinite { index }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_zero_is_not_infinitely_uncertain() {
        assert_eq!(Interval::symmetric(0.0, 0.0, 20, 20.0).relative_half_width(), 0.0);
        assert_eq!(Interval::symmetric(0.0, 1.0, 20, 20.0).relative_half_width(), f64::INFINITY);
    }

    #[test]
    fn the_ends_belong_to_the_interval() {
        let interval = Interval::symmetric(10.0, 2.0, 20, 20.0);
        assert!(interval.contains(8.0) && interval.contains(12.0) && !interval.contains(12.1));
    }

    #[test]
    fn the_position_of_a_broken_value_is_named() {
        assert_eq!(require_finite(&[1.0, f64::NAN]), Err(Refusal::NotFinite { index: 1 }));
        assert_eq!(require_finite(&[1.0]), Ok(()));
    }
}
