//! Start times whose gaps have an exponential distribution: a Poisson process.

use super::Rate;
use crate::address::{mix, unit_open};

/// Start times with independent gaps. The gaps have an exponential distribution, and are computed
/// with the inverse of the distribution function. Fractions of a nanosecond are added to the next
/// gap. Rounding to nanoseconds therefore does not change the mean gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    mean_gap_ns: f64,
    seed: u64,
    index: u64,
    now_ns: u64,
    fraction_ns: f64,
}

impl Exponential {
    /// Creates a Poisson process with the rate `rate / parts`. If `parts` such processes have
    /// different seeds, they form a Poisson process with the rate `rate` together (superposition).
    #[must_use]
    pub fn new(rate: Rate, parts: u64, seed: u64) -> Self {
        let (dividend, divisor) = rate.period();
        let mean_gap_ns = dividend as f64 * parts.max(1) as f64 / divisor as f64;
        Self { mean_gap_ns, seed, index: 0, now_ns: 0, fraction_ns: 0.0 }
    }
}

impl Iterator for Exponential {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let gap = -libm::log(unit_open(mix(self.seed, self.index))) * self.mean_gap_ns;
        self.index += 1;
        let ahead = self.fraction_ns + gap;
        let whole = libm::floor(ahead);
        self.fraction_ns = ahead - whole;
        self.now_ns = self.now_ns.saturating_add(whole as u64);
        Some(self.now_ns)
    }
}
