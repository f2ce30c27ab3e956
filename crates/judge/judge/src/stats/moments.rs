//! Mean and variance in one pass.
//!
//! B. P. Welford, *Note on a Method for Calculating Corrected Sums of Squares and Products*,
//! Technometrics 4 (1962). A variance from sums of squares would lose all its digits for latencies
//! of a billion nanoseconds that differ by only a few nanoseconds. For the same reason, values are
//! stored relative to the first value.

/// Running mean and variance of a sample. The order of the values affects only the rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    /// First value; the other values are stored relative to it.
    origin: f64,
    /// Mean minus `origin`.
    mean: f64,
    m2: f64,
}

impl Moments {
    /// Creates the moments of a sample without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the moments of a whole slice.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut moments = Self::new();
        for &value in values {
            moments.push(value);
        }
        moments
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        let before = self.count as f64;
        if self.count == 0 {
            self.origin = value;
        }
        self.count += 1;
        let n = self.count as f64;
        let delta = value - self.origin - self.mean;
        let step = delta / n;
        self.mean += step;
        self.m2 += delta * step * before;
    }

    /// Returns the arithmetic mean; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.origin + self.mean)
    }

    /// Returns the sample variance (divisor n - 1); `None` with fewer than two values.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.m2 / (self.count - 1) as f64)
    }

    /// Returns the sample standard deviation; `None` with fewer than two values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(libm::sqrt)
    }

    /// Returns the standard deviation divided by the mean; `None` if there are fewer than two
    /// values or the mean is zero.
    #[must_use]
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|&mean| mean != 0.0)?;
        self.standard_deviation().map(|deviation| deviation / mean.abs())
    }
}

/// Returns the arithmetic mean; `None` for an empty slice.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    Moments::of(values).mean()
}

/// Returns the sample variance (divisor n - 1); `None` for fewer than two values.
#[must_use]
pub fn variance(values: &[f64]) -> Option<f64> {
    Moments::of(values).variance()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_offset_costs_no_digits() {
        let small = Moments::of(&[4.0, 7.0, 13.0, 16.0]);
        let large = Moments::of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
        assert_eq!(small.variance(), Some(30.0));
        assert_eq!(large.variance(), Some(30.0));
    }

    #[test]
    fn too_little_data_has_no_moment() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[5.0]), None);
        assert_eq!(Moments::of(&[0.0, 0.0]).coefficient_of_variation(), None);
    }
}
