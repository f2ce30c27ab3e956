//! A number that a tool printed. It is stored with its location in the file, and with the range of
//! true values that the tool would print in the same way.

use serde::Serialize;

/// A figure of a result, in base units. These are bytes, nanoseconds, operations, or rates of these
/// per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The printed value.
    pub value: f64,
    /// Smallest true value that the tool would print in the same way.
    pub least: f64,
    /// Largest true value that the tool would print in the same way.
    pub most: f64,
    /// Location of the figure in the file, such as `jobs[0].read.iops` or `line 12, column 3
    /// (iops)`.
    pub field: String,
}

impl Figure {
    /// Creates a figure that is exact, such as a count.
    #[must_use]
    pub fn exact(value: f64, field: impl Into<String>) -> Self {
        Self { value, least: value, most: value, field: field.into() }
    }

    /// Creates a figure that was rounded to the nearest multiple of `step`.
    #[must_use]
    pub fn rounded(value: f64, step: f64, field: impl Into<String>) -> Self {
        let half = step.abs() / 2.0;
        Self { value, least: value - half, most: value + half, field: field.into() }
    }

    /// Creates a figure that was truncated to a multiple of `step`.
    #[must_use]
    pub fn truncated(value: f64, step: f64, field: impl Into<String>) -> Self {
        Self { value, least: value, most: value + step.abs(), field: field.into() }
    }

    /// Creates a figure that was either rounded or truncated.
    #[must_use]
    pub fn within(value: f64, step: f64, field: impl Into<String>) -> Self {
        let step = step.abs();
        Self { value, least: value - step, most: value + step, field: field.into() }
    }

    /// Converts the figure to another unit.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        self.value *= factor;
        let (a, b) = (self.least * factor, self.most * factor);
        (self.least, self.most) = (a.min(b), a.max(b));
        self
    }

    /// Extends the range in both directions, by this share of the value in each direction.
    #[must_use]
    pub fn widened(mut self, share: f64) -> Self {
        let by = self.value.abs() * share;
        self.least -= by;
        self.most += by;
        self
    }

    /// Returns true if the value is finite, so that it can be used in calculations.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.value.is_finite() && self.least.is_finite() && self.most.is_finite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_covers_all_values_that_print_the_same() {
        let figure = Figure::rounded(1.25, 0.01, "x");
        assert!((figure.least - 1.245).abs() < 1e-12 && (figure.most - 1.255).abs() < 1e-12);
        let figure = Figure::truncated(7.0, 1.0, "x");
        assert_eq!((figure.least, figure.most), (7.0, 8.0));
        let figure = Figure::truncated(7.0, 1.0, "x").scaled(1024.0);
        assert_eq!((figure.value, figure.least, figure.most), (7168.0, 7168.0, 8192.0));
        assert!(!Figure::exact(f64::NAN, "x").is_usable());
    }
}
