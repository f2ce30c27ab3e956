//! Zipf's law: rank `k` of `1..=n` has a chance proportional to `k^-s`.
//!
//! Rejection-inversion of W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 6(3), 1996: exact for any exponent `s >= 0`, 1 included,
//! in constant time and without a table. The integrals near `s = 1` are written with `log1p(x)/x` and
//! `expm1(x)/x`, which are smooth there.

use super::hash::{mix, unit_open};

/// A sampler of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    /// The integral of the hat at 1.5 less the first rank's probability: where sampling starts.
    from: f64,
    /// The integral at `n + 0.5`: where it ends.
    to: f64,
    /// Ranks that lie closer to their variate than this are accepted at once.
    sure: f64,
}

impl Zipf {
    /// Ranks `0..n` with chances proportional to `(rank + 1)^-exponent`. `n` of 0 is taken as 1, and a
    /// negative exponent or one that is not a number as 0.
    #[must_use]
    pub fn new(n: u64, exponent: f64) -> Self {
        let n = n.max(1) as f64;
        let exponent = if exponent > 0.0 { exponent } else { 0.0 };
        let sure = 2.0 - inverse(exponent, integral(exponent, 2.5) - hat(exponent, 2.0));
        Self {
            n,
            exponent,
            from: integral(exponent, 1.5) - 1.0,
            to: integral(exponent, n + 0.5),
            sure,
        }
    }

    /// The rank for an index: 0 is the likeliest. Pure: the same seed and index give the same rank.
    #[must_use]
    #[inline]
    pub fn at(&self, seed: u64, index: u64) -> u64 {
        let mut bits = mix(seed, index);
        loop {
            let u = self.to + unit_open(bits) * (self.from - self.to);
            let x = inverse(self.exponent, u);
            // Rounded to the nearest, and held inside 1..=n against rounding of the integrals.
            let k = libm::floor(x + 0.5).clamp(1.0, self.n);
            if k - x <= self.sure || u >= integral(self.exponent, k + 0.5) - hat(self.exponent, k) {
                return (k as u64).saturating_sub(1);
            }
            bits = mix(bits, index);
        }
    }
}

/// The hat `x^-s`.
fn hat(exponent: f64, x: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// The integral of the hat from 1 to `x`: `(x^(1-s) - 1) / (1 - s)`, `ln x` at `s = 1`.
fn integral(exponent: f64, x: f64) -> f64 {
    let log = libm::log(x);
    exp_m1_over(((1.0 - exponent) * log).max(-700.0)) * log
}

/// The inverse of [`integral`].
fn inverse(exponent: f64, y: f64) -> f64 {
    // Rounding can take the argument of the logarithm below its pole.
    let t = (y * (1.0 - exponent)).max(-1.0 + f64::EPSILON);
    libm::exp(ln_1p_over(t) * y)
}

/// `ln(1 + x) / x`, 1 at 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// `(e^x - 1) / x`, 1 at 0.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square of the first ranks and the rest against the definition, and no rank outside.
    fn chi_square(n: u64, exponent: f64, samples: u64, cells: u64) -> f64 {
        let zipf = Zipf::new(n, exponent);
        let mut counts = vec![0u64; cells as usize + 1];
        for i in 0..samples {
            let rank = zipf.at(7, i);
            assert!(rank < n);
            counts[rank.min(cells) as usize] += 1;
        }
        let weight = |k: u64| (k as f64).powf(-exponent);
        let total: f64 = (1..=n).map(weight).sum();
        let mut chi = 0.0;
        let mut rest = 1.0;
        for (k, count) in counts[..cells as usize].iter().enumerate() {
            let p = weight(k as u64 + 1) / total;
            rest -= p;
            let expected = samples as f64 * p;
            chi += (*count as f64 - expected).powi(2) / expected;
        }
        if cells < n {
            let expected = samples as f64 * rest;
            chi += (counts[cells as usize] as f64 - expected).powi(2) / expected;
        }
        chi
    }

    /// 20 cells and the rest: 20 degrees of freedom, the 99.9 % point is 45.3.
    #[test]
    fn chances_are_those_of_the_definition() {
        for exponent in [0.0, 0.3, 0.5, 0.9, 0.999_999, 1.0, 1.000_001, 1.1, 1.2, 2.0, 3.5] {
            let chi = chi_square(1_000, exponent, 200_000, 20);
            assert!(chi < 45.3, "exponent {exponent}: chi-square {chi}");
        }
    }

    /// 3 cells of a small space: 2 degrees of freedom, the 99.9 % point is 13.8.
    #[test]
    fn small_spaces_are_exact_too() {
        for exponent in [0.0, 0.7, 1.0, 1.5] {
            let chi = chi_square(3, exponent, 100_000, 3);
            assert!(chi < 13.8, "exponent {exponent}: chi-square {chi}");
        }
    }

    #[test]
    fn one_rank_and_huge_spaces_and_odd_exponents() {
        for exponent in [0.0, 1.0, 50.0, -3.0, f64::NAN, 1e6] {
            let one = Zipf::new(1, exponent);
            let huge = Zipf::new(1 << 60, exponent);
            for i in 0..1_000 {
                assert_eq!(one.at(1, i), 0);
                assert!(huge.at(1, i) < 1 << 60);
            }
        }
    }

    /// In a space of 2^40 the chance of the first rank is 1 / zeta-like sum; at exponent 2 it is
    /// 6 / pi^2 to 12 digits.
    #[test]
    fn the_first_rank_of_a_huge_space() {
        let zipf = Zipf::new(1 << 40, 2.0);
        let hits = (0..200_000).filter(|i| zipf.at(3, *i) == 0).count() as f64 / 200_000.0;
        let expected = 6.0 / std::f64::consts::PI.powi(2);
        // Three standard errors of a share near 0.61 in 200,000.
        assert!((hits - expected).abs() < 3.3e-3, "{hits}");
    }
}
