//! fio's `steadystate` as a measurement `until-steady`.
//!
//! fio ends a job as soon as its rate, or the slope of it, has stayed within a limit over a window
//! (`steadystate_duration`). A plan's measurement ends by SNIA's rule: five rounds within 20 % of their mean, with a
//! slope of 10 % at most, and an interval of the mean within 5 %. The window becomes the five rounds, and the runtime
//! the longest that measuring may take; the limit has no equal, which is said.

/// Rounds of the rule's window.
pub(super) const ROUNDS: u64 = 5;

/// A measurement that ends when the system is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steady {
    /// Length of a round.
    pub(crate) round_ns: u64,
    /// What comes before the window begins, beside the job's ramp time.
    pub(crate) ramp_ns: u64,
}

impl Steady {
    /// The window: no measurement that ends by it is shorter.
    pub(crate) fn window_ns(self) -> u64 {
        self.round_ns.saturating_mul(ROUNDS)
    }
}
