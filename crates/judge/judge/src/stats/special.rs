//! Special functions for statistical distributions: incomplete beta, binomial, normal, Kolmogorov.
//!
//! The binomial term is evaluated in its saddle-point form (C. Loader, *Fast and Accurate
//! Computation of Binomial Probabilities*, 2000). It has full precision even for a billion samples,
//! where a difference of log-gammas loses nine digits. The continued fraction of the incomplete
//! beta function is DLMF 8.17.22, summed by the method of Lentz.
//!
//! All functions use `libm`, because a verdict must not depend on the C library of the machine.

use core::f64::consts::{PI, SQRT_2};

/// `ln sqrt(2 pi)`.
const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// Returns the error of Stirling's formula, `ln gamma(x + 1) - [(x + 1/2) ln x - x + ln sqrt(2
/// pi)]`.
fn stirling_error(x: f64) -> f64 {
    if x < 16.0 {
        return libm::lgamma(x + 1.0) - (x + 0.5) * libm::log(x) + x - LN_SQRT_TWO_PI;
    }
    let square = x * x;
    // Bernoulli-number series; the first omitted term is below 1e-16 for x of 16 and above.
    let tail = 1.0 / 1188.0 - 691.0 / 360_360.0 / square;
    let tail = 1.0 / 1680.0 - tail / square;
    let tail = 1.0 / 1260.0 - tail / square;
    let tail = 1.0 / 360.0 - tail / square;
    (1.0 / 12.0 - tail / square) / x
}

/// Returns the deviance `x ln(x / m) + m - x`, without cancellation if `x` is close to `m`.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    // The series does not converge for NaN and infinity.
    if !difference.is_finite() {
        return f64::NAN;
    }
    if difference.abs() >= 0.1 * (x + m) {
        return x * libm::log(x / m) + m - x;
    }
    let v = difference / (x + m);
    let square = v * v;
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    let mut odd = 3.0;
    loop {
        term *= square;
        let next = sum + term / odd;
        if next == sum {
            return sum;
        }
        sum = next;
        odd += 2.0;
    }
}

/// Returns `x^a y^b / B(a, b)` with `y = 1 - x`: the density of the beta distribution times `x y`.
fn beta_kernel(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let exponent = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x)
        - deviance(b, n * y);
    libm::exp(exponent) * libm::sqrt(a * b / (2.0 * PI * n))
}

/// Returns the continued fraction of the incomplete beta function, for `x` below the mean of the
/// distribution.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    // The fraction converges in a small multiple of sqrt(max(a, b)) terms: 1e6 is enough for a
    // billion samples.
    const MAX_TERMS: u32 = 1_000_000;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for term in 1..MAX_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// Returns the regularised incomplete beta function `I_x(a, b)`, for `a, b > 0`. Both `x` and `y =
/// 1 - x` are parameters, so that neither of them loses digits. `x` is clamped to 0..=1.
#[must_use]
pub fn beta_of_parts(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if [a, b, x, y].iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let kernel = beta_kernel(a, b, x, y);
    if x < (a + 1.0) / (a + b + 2.0) {
        kernel * beta_fraction(a, b, x) / a
    } else {
        1.0 - kernel * beta_fraction(b, a, y) / b
    }
}

/// Returns `P(X <= k)` for `X` binomial with `n` trials of probability `p`.
#[must_use]
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    // Sample counts are far below 2^53, so the conversion is exact.
    beta_of_parts((n - k) as f64, k as f64 + 1.0, 1.0 - p, p)
}

/// Returns `P(Z <= z)` for a standard normal `Z`.
#[must_use]
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Returns the `z` with `P(Z <= z) = p`; infinite at 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() {
        return f64::NAN;
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        // A small `p` has its full precision. If `p` is close to 1, rounding has already reduced
        // the precision of `1 - p`.
        return -normal_quantile(1.0 - p);
    }
    // The first approximation is Abramowitz & Stegun 26.2.23, with an error of 4.5e-4. Newton steps
    // on the logarithm of the tail improve it. In the tail, this logarithm is close to a parabola,
    // so the steps cannot overshoot.
    let t = libm::sqrt(-2.0 * libm::log(p));
    let mut z = -(t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308))));
    for _ in 0..4 {
        let cdf = normal_cdf(z);
        let density = libm::exp(-0.5 * z * z - LN_SQRT_TWO_PI);
        z -= libm::log(cdf / p) * cdf / density;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a series overflows, its statistics are NaN. The functions must return NaN instead of
    /// looping.
    #[test]
    fn what_is_no_number_ends_as_none() {
        assert!(beta_of_parts(2.0, 0.5, f64::NAN, f64::NAN).is_nan());
        assert!(beta_of_parts(f64::NAN, 0.5, 0.5, 0.5).is_nan());
        assert!(deviance(f64::INFINITY, 1.0).is_nan());
    }

    #[test]
    fn binomial_tails_add_up_by_hand() {
        // With three coins, the cumulative probabilities are 1/8, 4/8, 7/8 and 1.
        for (k, expected) in [(0, 0.125), (1, 0.5), (2, 0.875), (3, 1.0)] {
            assert!((binomial_cdf(k, 3, 0.5) - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn normal_quantile_undoes_the_distribution_in_both_tails() {
        for z in [-8.0, -3.0, -1.0, -0.1, 0.0, 0.5, 2.0, 4.0] {
            let back = normal_quantile(normal_cdf(z));
            // In the upper tail, only the digits of `1 - p` are available, so the precision is at
            // most 1e-10.
            assert!((back - z).abs() < 1e-10, "{z} came back as {back}");
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }
}
