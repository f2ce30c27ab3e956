//! Mean, variance and higher moments in one pass.
//!
//! B. P. Welford, *Note on a Method for Calculating Corrected Sums of Squares and Products*,
//! Technometrics 4 (1962). Merging and the third and fourth moments follow P. Pébay, *Formulas for
//! Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical Moments*,
//! SAND2008-6212. Sums of squares would lose every digit on latencies of a billion nanoseconds that
//! differ by a few. For the same reason, values are stored relative to the first value.

/// Running moments of a sample. The order matters only for rounding; samples can be merged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    /// First value, the origin of the others.
    origin: f64,
    /// Mean minus origin.
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

impl Moments {
    /// Creates the moments of an empty sample.
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
        let square = step * step;
        let term = delta * step * before;
        self.mean += step;
        self.m4 +=
            term * square * (n * n - 3.0 * n + 3.0) + 6.0 * square * self.m2 - 4.0 * step * self.m3;
        self.m3 += term * step * (n - 2.0) - 3.0 * step * self.m2;
        self.m2 += term;
    }

    /// Adds another sample's moments.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let n = a + b;
        let delta = other.origin - self.origin + other.mean - self.mean;
        let square = delta * delta;
        self.m4 += other.m4
            + square * square * a * b * (a * a - a * b + b * b) / (n * n * n)
            + 6.0 * square * (a * a * other.m2 + b * b * self.m2) / (n * n)
            + 4.0 * delta * (a * other.m3 - b * self.m3) / n;
        self.m3 += other.m3
            + delta * square * a * b * (a - b) / (n * n)
            + 3.0 * delta * (a * other.m2 - b * self.m2) / n;
        self.m2 += other.m2 + square * a * b / n;
        self.mean += delta * b / n;
        self.count += other.count;
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the arithmetic mean; `None` without values.
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

    /// Returns the standard deviation over the mean; `None` with fewer than two values or a mean of
    /// zero.
    #[must_use]
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|&mean| mean != 0.0)?;
        self.standard_deviation().map(|deviation| deviation / mean.abs())
    }

    /// Returns the skewness `m3 / m2^1.5` of the values as a population; `None` if all values are
    /// equal.
    #[must_use]
    pub fn skewness(&self) -> Option<f64> {
        let n = self.count as f64;
        (self.m2 > 0.0).then(|| libm::sqrt(n) * self.m3 / (self.m2 * libm::sqrt(self.m2)))
    }

    /// Returns the excess kurtosis of the values as a population; `None` if all values are equal.
    #[must_use]
    pub fn excess_kurtosis(&self) -> Option<f64> {
        let n = self.count as f64;
        (self.m2 > 0.0).then(|| n * self.m4 / (self.m2 * self.m2) - 3.0)
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
    fn merging_equals_pushing() {
        let values: Vec<f64> = (0..100).map(|i| libm::sin(f64::from(i)) * 3.0 + 1.0).collect();
        let whole = Moments::of(&values);
        let mut merged = Moments::new();
        merged.merge(&Moments::of(&values[..17]));
        merged.merge(&Moments::new());
        merged.merge(&Moments::of(&values[17..]));
        assert_eq!(merged.count(), whole.count());
        let pairs = [
            (merged.mean(), whole.mean()),
            (merged.variance(), whole.variance()),
            (merged.skewness(), whole.skewness()),
            (merged.excess_kurtosis(), whole.excess_kurtosis()),
        ];
        for (a, b) in pairs {
            assert!((a.unwrap() - b.unwrap()).abs() < 1e-12, "{a:?} against {b:?}");
        }
    }

    #[test]
    fn too_little_data_has_no_moment() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[5.0]), None);
        assert_eq!(Moments::of(&[2.0, 2.0]).skewness(), None);
        assert_eq!(Moments::of(&[0.0, 0.0]).coefficient_of_variation(), None);
    }
}
