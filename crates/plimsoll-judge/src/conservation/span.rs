//! Arithmetic on figures that stand for a span of values.
//!
//! A printed `1.2` is anything from 1.15 to 1.25. Sums and products of such figures are spans too, and an
//! equation fails only where no values in the spans fulfil it: the tolerance of a rule is the rounding of
//! what it reads, and nothing is added to it that is not stated.

use plimsoll_evidence::tool_result::Figure;

/// A span of values that are not negative, with the value that was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// As printed, or as it follows from printed values.
    pub value: f64,
    /// Least value that it may stand for.
    pub least: f64,
    /// Greatest value that it may stand for.
    pub most: f64,
}

impl From<&Figure> for Span {
    fn from(figure: &Figure) -> Self {
        let least = figure.least.max(0.0);
        Self { value: figure.value.max(0.0), least, most: figure.most.max(least) }
    }
}

impl Span {
    /// One value.
    pub fn exact(value: f64) -> Self {
        Self { value, least: value, most: value }
    }

    /// Product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            least: self.least * other.least,
            most: self.most * other.most,
        }
    }

    /// Product with a number that is not negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.times(Self::exact(factor))
    }

    /// Quotient; `None` where the divisor may be nothing.
    pub fn over(self, other: Self) -> Option<Self> {
        (other.least > 0.0).then(|| Self {
            value: self.value / other.value,
            least: self.least / other.most,
            most: self.most / other.least,
        })
    }

    /// Sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    /// Wider on both sides by this share.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        Self { least: self.least * (1.0 - share), most: self.most * (1.0 + share), ..self }
    }

    /// True where some value of one is also one of the other, within what doubles can tell.
    pub fn meets(self, other: Self) -> bool {
        const DOUBLES: f64 = 1e-9;
        let slack = DOUBLES * self.most.abs().max(other.most.abs());
        self.least <= other.most + slack && other.least <= self.most + slack
    }

    /// True where each value of this is greater than each of the other.
    pub fn is_above(self, other: Self) -> bool {
        !self.meets(other) && self.least > other.most
    }

    /// Width of the span as a share of its value.
    pub fn coarseness(self) -> f64 {
        if self.value > 0.0 { (self.most - self.least) / self.value } else { f64::INFINITY }
    }

    /// Sum of spans; `None` of none.
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
        // 10,000 a second of 4 KiB are 40.96 MB/s: printed as 41 that fits, printed as 41.0 it does not.
        let product = Span::exact(10_000.0).scaled(4096.0);
        assert!(product.meets(rounded(41e6, 1e6)));
        assert!(!product.meets(rounded(41e6, 0.1e6 / 2.0)));
        assert!(rounded(41e6, 0.05e6).is_above(product));
        assert_eq!(Span::exact(1.0).over(rounded(0.0, 1.0)), None);
        let quotient = Span::exact(100.0).over(rounded(10.0, 1.0)).unwrap();
        assert!(quotient.least < 9.6 && quotient.most > 10.5);
    }
}
