//! Conversion of fio's `steadystate` to `until-steady`.
//!
//! fio ends a job when its rate, or the slope of the rate, was within a limit over a whole window
//! (`steadystate_duration`). A plan's measurement ends by SNIA's rule: five rounds within 20 % of
//! their mean, a slope of at most 10 %, and a confidence interval of the mean within 5 %. The
//! window is divided into the five rounds, and the run time becomes the maximum of the measurement.
//! The limit has no equivalent, so the import adds a note about it.

/// Number of rounds in the rule's window.
pub(super) const ROUNDS: u64 = 5;

/// A measurement that ends at steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadyState {
    /// Round length.
    pub(crate) round_ns: u64,
    /// Time before the window, in addition to the job's ramp time.
    pub(crate) ramp_ns: u64,
}

impl SteadyState {
    /// Returns the window, which is the minimum length of the measurement.
    pub(crate) fn window_ns(self) -> u64 {
        self.round_ns.saturating_mul(ROUNDS)
    }
}
