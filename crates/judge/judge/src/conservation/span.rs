//! Arithmetic on figures that represent a span of values.
//!
//! A printed `1.2` stands for any value from 1.15 to 1.25. Sums and products of such figures are
//! spans too. An equation fails only if no values in the spans satisfy it. The tolerance of a rule
//! is therefore the rounding of its figures, unless the rule states a larger tolerance.

use plimsoll_evidence::tool_result::Figure;

/// Span of values that are not negative, with the printed value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Value as printed, or derived from printed values.
    pub value: f64,
    /// Minimum of the span.
    pub least: f64,
    /// Maximum of the span.
    pub most: f64,
}

impl From<&Figure> for Span {
    fn from(figure: &Figure) -> Self {
        let least = figure.least.max(0.0);
        Self { value: figure.value.max(0.0), least, most: figure.most.max(least) }
    }
}

impl Span {
    pub fn exact(value: f64) -> Self {
        Self { value, least: value, most: value }
    }

    /// Returns the product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            least: self.least * other.least,
            most: self.most * other.most,
        }
    }

    /// Returns the span multiplied by a number that is not negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.times(Self::exact(factor))
    }

    /// Returns the quotient of two spans; `None` if the divisor may be zero.
    pub fn over(self, other: Self) -> Option<Self> {
        (other.least > 0.0).then(|| Self {
            value: self.value / other.value,
            least: self.least / other.most,
            most: self.most / other.least,
        })
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    /// Widens the span on both sides by this share.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        Self { least: self.least * (1.0 - share), most: self.most * (1.0 + share), ..self }
    }

    /// Returns true if the spans overlap, within the precision of doubles.
    pub fn meets(self, other: Self) -> bool {
        const DOUBLES: f64 = 1e-9;
        let slack = DOUBLES * self.most.abs().max(other.most.abs());
        self.least <= other.most + slack && other.least <= self.most + slack
    }

    /// Returns true if each value of this span is greater than every value of the other span.
    pub fn is_above(self, other: Self) -> bool {
        !self.meets(other) && self.least > other.most
    }

    /// Returns the width of the span, divided by its value.
    pub fn coarseness(self) -> f64 {
        if self.value > 0.0 { (self.most - self.least) / self.value } else { f64::INFINITY }
    }

    /// Returns the sum of spans; `None` if there are no spans.
    pub fn sum(spans: impl IntoIterator<Item = Self>) -> Option<Self> {
        spans.into_iter().reduce(Self::plus)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rounded(value: f64, step: f64) -> Span {
        Span::from(&Figure::rounded(value, step, ""))
    }

    #[test]
    fn rounding_is_the_tolerance() {
        // 10,000 operations of 4 KiB per second move 40.96 MB/s. A printed 41 MB/s agrees with this
        // figure, but a printed 41.0 MB/s does not.
        let product = Span::exact(10_000.0).scaled(4096.0);
        assert!(product.meets(rounded(41e6, 1e6)));
        assert!(!product.meets(rounded(41e6, 0.1e6 / 2.0)));
        assert!(rounded(41e6, 0.05e6).is_above(product));
        assert_eq!(Span::exact(1.0).over(rounded(0.0, 1.0)), None);
        let quotient = Span::exact(100.0).over(rounded(10.0, 1.0)).unwrap();
        assert!(quotient.least < 9.6 && quotient.most > 10.5);
    }
}
