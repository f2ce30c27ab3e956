//! Student's t distribution with any positive number of degrees of freedom.
//!
//! "Student" (W. S. Gosset), *The Probable Error of a Mean*, Biometrika 6 (1908). The distribution
//! function is the regularised incomplete beta function (DLMF 8.17). Bracketed Newton steps compute
//! the quantile from the distribution function, so that both have the same precision.

use core::f64::consts::PI;

use super::special::{beta_of_parts, normal_quantile};

/// Returns `P(T <= t)` with `freedom > 0` degrees of freedom.
#[must_use]
pub fn t_cdf(t: f64, freedom: f64) -> f64 {
    if t == 0.0 {
        return 0.5;
    }
    let whole = freedom + t * t;
    let tail = 0.5 * beta_of_parts(0.5 * freedom, 0.5, freedom / whole, t * t / whole);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Returns `P(|T| >= |t|)`, which is the two-sided p-value of a t statistic.
#[must_use]
pub fn t_two_sided(t: f64, freedom: f64) -> f64 {
    2.0 * t_cdf(-t.abs(), freedom)
}

/// Returns the density of the t distribution, used for the Newton steps.
fn t_density(t: f64, freedom: f64) -> f64 {
    let log = libm::lgamma(0.5 * (freedom + 1.0))
        - libm::lgamma(0.5 * freedom)
        - 0.5 * libm::log(freedom * PI)
        - 0.5 * (freedom + 1.0) * libm::log1p(t * t / freedom);
    libm::exp(log)
}

/// Returns the `t` with `P(T <= t) = p`; infinite at 0 and 1, NaN if `p` is outside 0..=1 or
/// `freedom <= 0`.
#[must_use]
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    if p > 0.5 {
        return -t_quantile(1.0 - p, freedom);
    }
    if p == 0.5 {
        return 0.0;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let mut high = 0.0;
    let mut low = normal_quantile(p).min(-1.0);
    while t_cdf(low, freedom) > p {
        high = low;
        low *= 2.0;
        if low.is_infinite() {
            return low;
        }
    }
    let mut t = 0.5 * (low + high);
    for _ in 0..200 {
        let excess = t_cdf(t, freedom) - p;
        if excess > 0.0 {
            high = t;
        } else {
            low = t;
        }
        let newton = t - excess / t_density(t, freedom);
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let step = (next - t).abs();
        t = next;
        if step <= 1e-14 * t.abs() {
            break;
        }
    }
    t
}

/// Returns the factor by which a standard error is multiplied to get the half width of a two-sided
/// interval with `confidence` (0.95 for 95 %).
#[must_use]
pub fn t_factor(confidence: f64, freedom: f64) -> f64 {
    -t_quantile(0.5 * (1.0 - confidence), freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_degree_of_freedom_is_cauchy() {
        for t in [-30.0, -1.0, 0.3, 2.0, 1000.0] {
            let cauchy = 0.5 + libm::atan(t) / PI;
            assert!((t_cdf(t, 1.0) - cauchy).abs() < 1e-14);
        }
        assert!((t_quantile(0.975, 1.0) - libm::tan(0.475 * PI)).abs() < 1e-11);
    }

    #[test]
    fn two_degrees_of_freedom_have_a_closed_quantile() {
        for p in [0.001, 0.2, 0.6, 0.975] {
            let alpha: f64 = 4.0 * p * (1.0 - p);
            let closed = 2.0 * (p - 0.5) * libm::sqrt(2.0 / alpha);
            assert!((t_quantile(p, 2.0) - closed).abs() < 1e-11 * closed.abs().max(1.0));
        }
    }

    #[test]
    fn nonsense_is_not_a_number_and_the_ends_are_infinite() {
        assert!(t_quantile(1.5, 3.0).is_nan());
        assert!(t_quantile(0.9, 0.0).is_nan());
        assert!(t_quantile(0.9, f64::NAN).is_nan());
        assert_eq!(t_quantile(1.0, 3.0), f64::INFINITY);
        assert_eq!(t_quantile(0.0, 3.0), f64::NEG_INFINITY);
    }
}
