//! Conversion of fio's `steadystate` to `until-steady`.
//!
//! fio ends a job when its rate, or the slope of the rate, was within a limit over a whole window
//! (`steadystate_duration`). A plan uses SNIA's rule instead. It ends the measurement when five
//! rounds are within 20 % of their mean, their slope is at most 10 %, and the confidence interval
//! of the mean is within 5 %. The conversion divides fio's window into five rounds. The job's run
//! time becomes the maximum length of the measurement. fio's limit for the rate or its slope cannot
//! be converted, so the import adds a note about this limit.

/// Number of rounds that SNIA's rule examines.
pub(super) const ROUNDS: u64 = 5;

/// A measurement that ends at steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadyState {
    /// Round length.
    pub(crate) round_ns: u64,
    /// Time before the window in addition to the job's ramp time.
    pub(crate) ramp_ns: u64,
}

impl SteadyState {
    /// Returns the length of the window, which is the minimum length of the measurement.
    pub(crate) fn window_ns(self) -> u64 {
        self.round_ns.saturating_mul(ROUNDS)
    }
}
