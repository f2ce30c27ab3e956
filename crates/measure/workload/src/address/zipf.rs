//! Zipf's law: the probability of rank `k` in `1..=n` is proportional to `k^-s`.
//!
//! The first ranks have most of the probability. They are drawn from a table with the alias method
//! (A. J. Walker 1977; M. D. Vose, "A linear algorithm for generating random numbers with a given
//! distribution", IEEE Transactions on Software Engineering 17(9), 1991). All later ranks are drawn
//! with rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", ACM TOMACS 6(3), 1996). Each method is exact for
//! any exponent `s >= 0`, including 1, and takes constant time. Near `s = 1`, the integrals use
//! `log1p(x)/x` and `expm1(x)/x`, which are smooth functions.

use super::hash::{mix, unit_open};

/// Number of ranks in the table. The table occupies 80 KiB, which fits in a second-level cache.
const TABLE: u64 = 8192;

/// Generates random ranks. Their probabilities follow Zipf's law.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    head: Head,
    /// Probability with which a random rank is in the table.
    head_share: f64,
    /// Integral of the hat function at the end of the table (`from`). The next field (`to`) is the
    /// integral at `n + 0.5`.
    from: f64,
    to: f64,
    /// If the difference between a rank outside the table and its random variate is less than this
    /// value, the rank is accepted immediately.
    sure: f64,
}

impl Zipf {
    /// Creates the ranks `0..n` with probabilities proportional to `(rank + 1)^-exponent`. If `n`
    /// is 0, it is treated as 1. If the exponent is negative or not a number, it is treated as 0.
    #[must_use]
    pub fn new(n: u64, exponent: f64) -> Self {
        let exponent = if exponent > 0.0 { exponent } else { 0.0 };
        let ranks = n.clamp(1, TABLE);
        let weights: Vec<f64> = (1..=ranks).map(|k| hat(exponent, k as f64)).collect();
        let (n, end) = (n.max(1) as f64, ranks as f64);
        // The sum starts with the smallest terms, so that no digits are lost.
        let head: f64 = weights.iter().rev().sum();
        let tail = if n > end { sum_between(exponent, end + 0.5, n + 0.5) } else { 0.0 };
        let first = end + 1.0;
        let sure = first - inverse(exponent, integral(exponent, end + 1.5) - hat(exponent, first));
        Self {
            n,
            exponent,
            head_share: if tail > 0.0 { head / (head + tail) } else { 1.0 },
            head: Head::new(&weights, head),
            from: integral(exponent, end + 0.5),
            to: integral(exponent, n + 0.5),
            sure,
        }
    }

    /// Returns the rank for an index. Rank 0 has the highest probability. The rank depends only on
    /// the seed and the index.
    #[must_use]
    #[inline]
    pub fn at(&self, seed: u64, index: u64) -> u64 {
        let bits = mix(seed, index);
        let u = unit_open(bits);
        if u < self.head_share {
            return self.head.at(u / self.head_share);
        }
        self.beyond(bits, index)
    }

    /// Draws a random rank outside the table.
    fn beyond(&self, mut bits: u64, index: u64) -> u64 {
        let first = self.head.ranks() + 1.0;
        loop {
            bits = mix(bits, index);
            let u = self.to + unit_open(bits) * (self.from - self.to);
            let x = inverse(self.exponent, u);
            // The variate is rounded to the nearest rank. Because the integrals have rounding
            // errors, the rank is then limited to first..=n.
            let k = libm::floor(x + 0.5).clamp(first, self.n);
            if k - x <= self.sure || u >= integral(self.exponent, k + 0.5) - hat(self.exponent, k) {
                return (k as u64).saturating_sub(1);
            }
        }
    }
}

/// Generates random numbers with given probabilities, with the alias method. Each number has a
/// column. The lower part of the column belongs to the number itself, and the upper part belongs to
/// another number.
#[derive(Clone, Debug, PartialEq)]
struct Head {
    heights: Box<[f64]>,
    others: Box<[u16]>,
}

impl Head {
    /// Creates the table. The probabilities are proportional to `weights`, whose sum is `total`.
    fn new(weights: &[f64], total: f64) -> Self {
        let n = weights.len() as f64;
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight / total * n).collect();
        let mut others = vec![0u16; heights.len()];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..heights.len()).partition(|at| heights[*at] < 1.0);
        while let (Some(low), Some(high)) = (small.pop(), large.pop()) {
            others[low] = high as u16;
            heights[high] -= 1.0 - heights[low];
            if heights[high] < 1.0 { small.push(high) } else { large.push(high) }
        }
        // The weights that remain are 1, except for rounding errors.
        for at in small.into_iter().chain(large) {
            heights[at] = 1.0;
        }
        Self { heights: heights.into(), others: others.into() }
    }

    fn ranks(&self) -> f64 {
        self.heights.len() as f64
    }

    /// Returns the number to which a point in the unit interval belongs.
    #[inline]
    fn at(&self, share: f64) -> u64 {
        let place = share * self.ranks();
        let column = (place as usize).min(self.heights.len() - 1);
        let (own, other) = (column as u64, u64::from(self.others[column]));
        // The code contains no branch here, because the processor could not predict it.
        let above = u64::from(place - column as f64 > self.heights[column]);
        own ^ ((own ^ other) & above.wrapping_neg())
    }
}

/// Returns the sum of `k^-s` over the whole numbers between two half-integers. The sum is computed
/// as the integral with the first two corrections of the midpoint rule (Euler and Maclaurin;
/// Abramowitz and Stegun 23.1.30 for midpoints).
fn sum_between(s: f64, from: f64, to: f64) -> f64 {
    let slope = |x: f64| -s * hat(s, x) / x;
    let third = |x: f64| -s * (s + 1.0) * (s + 2.0) * hat(s, x) / (x * x * x);
    let whole = integral(s, to) - integral(s, from);
    let sum = whole - (slope(to) - slope(from)) / 24.0 + 7.0 * (third(to) - third(from)) / 5760.0;
    // If the exponent is this large, the remainder is too small to be represented.
    if sum > 0.0 { sum } else { 0.0 }
}

/// Returns the value of the hat function, `x^-s`.
fn hat(exponent: f64, x: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// Returns the integral of the hat function from 1 to `x`. It is `(x^(1-s) - 1) / (1 - s)`, or `ln
/// x` if `s = 1`.
fn integral(exponent: f64, x: f64) -> f64 {
    let log = libm::log(x);
    exp_m1_over(((1.0 - exponent) * log).max(-700.0)) * log
}

/// Returns the value of the inverse function of [`integral`].
fn inverse(exponent: f64, y: f64) -> f64 {
    // Because of rounding errors, the argument of the logarithm can be negative.
    let t = (y * (1.0 - exponent)).max(-1.0 + f64::EPSILON);
    libm::exp(ln_1p_over(t) * y)
}

/// Returns `ln(1 + x) / x`. The value at 0 is 1.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// Returns `(e^x - 1) / x`. The value at 0 is 1.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the frequencies of the generated ranks with their probabilities by definition.
    /// Returns the chi-square statistic. Each of the first ranks has its own cell, and all later
    /// ranks share one cell. No rank may be out of range.
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

    /// The test has 20 cells for the first ranks, and one cell for all later ranks. With 20 degrees
    /// of freedom, the 99.9 % quantile of chi-square is 45.3.
    #[test]
    fn chances_are_those_of_the_definition() {
        for exponent in [0.0, 0.3, 0.5, 0.9, 0.999_999, 1.0, 1.000_001, 1.1, 1.2, 2.0, 3.5] {
            let chi = chi_square(1_000, exponent, 200_000, 20);
            assert!(chi < 45.3, "exponent {exponent}: chi-square {chi}");
        }
    }

    /// If the space has three slots, the test has three cells. With 2 degrees of freedom, the 99.9
    /// % quantile of chi-square is 13.8.
    #[test]
    fn small_spaces_are_exact_too() {
        for exponent in [0.0, 0.7, 1.0, 1.5] {
            let chi = chi_square(3, exponent, 100_000, 3);
            assert!(chi < 13.8, "exponent {exponent}: chi-square {chi}");
        }
    }

    /// Compares the approximate sum of all terms after the table with the exact sum of these terms.
    #[test]
    fn sums_are_those_of_adding_up() {
        for exponent in [0.0, 0.5, 1.0, 1.1, 2.0] {
            let sum: f64 = (2049..=300_000u32).rev().map(|k| f64::from(k).powf(-exponent)).sum();
            let found = sum_between(exponent, 2048.5, 300_000.5);
            assert!((found / sum - 1.0).abs() < 1e-9, "exponent {exponent}: {found} and {sum}");
        }
    }

    /// Counts the ranks just before and just after the end of the table, in cells of 256 ranks.
    /// With 9 degrees of freedom, the 99.9 % quantile of chi-square is 27.9.
    #[test]
    fn the_end_of_the_table_does_not_show() {
        for exponent in [0.2, 1.0, 1.3] {
            let zipf = Zipf::new(100_000, exponent);
            let mut counts = [0u64; 10];
            for i in 0..2_000_000 {
                let cell = (zipf.at(5, i) + 5 * 256).checked_sub(TABLE).map(|past| past / 256);
                if let Some(count) = cell.and_then(|cell| counts.get_mut(cell as usize)) {
                    *count += 1;
                }
            }
            let weight = |cell: u64| {
                let first = TABLE - 5 * 256 + cell * 256;
                (first..first + 256).map(|k| (k as f64 + 1.0).powf(-exponent)).sum::<f64>()
            };
            let (all, sum): (f64, u64) = ((0..10).map(weight).sum(), counts.iter().sum());
            let chi: f64 = (0..10)
                .map(|cell| {
                    let expected = sum as f64 * weight(cell) / all;
                    (counts[cell as usize] as f64 - expected).powi(2) / expected
                })
                .sum();
            assert!(chi < 27.9, "exponent {exponent}: chi-square {chi}");
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

    /// For the exponent 2 and a space of 2^40, the probability of the first rank agrees with 6 /
    /// pi^2 in 12 digits.
    #[test]
    fn the_first_rank_of_a_huge_space() {
        let zipf = Zipf::new(1 << 40, 2.0);
        let hits = (0..200_000).filter(|i| zipf.at(3, *i) == 0).count() as f64 / 200_000.0;
        let expected = 6.0 / std::f64::consts::PI.powi(2);
        // The test uses 200,000 values, of which a fraction of 0.61 is expected. The tolerance is
        // three standard errors of this fraction.
        assert!((hits - expected).abs() < 3.3e-3, "{hits}");
    }
}
