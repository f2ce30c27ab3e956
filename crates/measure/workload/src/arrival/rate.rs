//! Rates of operations.

/// Rate in operations per second. It is stored in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    micro_ops_per_s: u64,
}

/// Error for a rate that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a rate of {rate_per_s} operations per second is not between 0.000001 and 1,000,000,000")]
pub struct RateError {
    pub rate_per_s: f64,
}

impl Rate {
    /// Creates a rate from a number of operations per second. The number is rounded to millionths.
    ///
    /// # Errors
    /// [`RateError`] if the rate is below 1e-6 or above 1e9. Higher rates are impossible, because
    /// start times are in nanoseconds.
    pub fn per_s(rate_per_s: f64) -> Result<Self, RateError> {
        let micro = libm::round(rate_per_s * 1e6);
        if (1.0..=1e15).contains(&micro) {
            Ok(Self { micro_ops_per_s: micro as u64 })
        } else {
            Err(RateError { rate_per_s })
        }
    }

    /// Returns the time between two starts in nanoseconds. It is a fraction, which is returned as
    /// (dividend, divisor).
    pub(super) fn period(self) -> (u64, u64) {
        (1_000_000_000_000_000, self.micro_ops_per_s)
    }
}
