//! Start times that are evenly spaced and do not drift.

use super::Rate;

/// Evenly spaced start times. Start `i` is at `floor((first + i * step) * period)`. The quotient
/// and the remainder of the period are added separately, so that rounding errors do not accumulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyArrivals {
    next_ns: u64,
    /// Fraction of a nanosecond that `next_ns` does not contain. Its unit is 1 ns / `divisor`.
    rest: u64,
    step_ns: u64,
    step_rest: u64,
    divisor: u64,
}

impl SteadyArrivals {
    /// Creates the start times for every `parts`-th operation of a stream with the rate `rate`. The
    /// first of these operations is operation number `part`.
    #[must_use]
    pub fn new(rate: Rate, part: u64, parts: u64) -> Self {
        let (dividend, divisor) = rate.period();
        let times = |n: u64| {
            let all = u128::from(dividend) * u128::from(n);
            let quotient = all / u128::from(divisor);
            let quotient = u64::try_from(quotient).unwrap_or(u64::MAX);
            (quotient, (all % u128::from(divisor)) as u64)
        };
        let (next_ns, rest) = times(part);
        let (step_ns, step_rest) = times(parts.max(1));
        Self { next_ns, rest, step_ns, step_rest, divisor }
    }
}

impl Iterator for SteadyArrivals {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let this = self.next_ns;
        self.next_ns = this.saturating_add(self.step_ns);
        // Each of the two remainders is less than the divisor. The divisor is less than 2^63 (see
        // `Rate`).
        self.rest += self.step_rest;
        if self.rest >= self.divisor {
            self.rest -= self.divisor;
            self.next_ns = self.next_ns.saturating_add(1);
        }
        Some(this)
    }
}
