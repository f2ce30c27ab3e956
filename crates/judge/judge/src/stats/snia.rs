//! SNIA's steady-state rule, exactly as specified.
//!
//! SNIA Solid State Storage Performance Test Specification (PTS) 2.0.2, section 2.1.24. Over a
//! measurement window of five rounds, a tracked variable is steady if both criteria are met:
//!
//! 1. The range of the values (maximum minus minimum) is at most 20 % of their mean.
//! 2. From the first round to the last, the least-squares line through the values rises or falls by
//!    at most 10 % of their mean.
//!
//! The rule alone proves little: with only five rounds of one minute, it accepts a device that is
//! still slowing down, and whose rate is overstated by 88 %. [`super::steady_state`] adds further
//! conditions, because these two are not sufficient.

/// Number of rounds in the measurement window.
pub const WINDOW_ROUNDS: usize = 5;

/// Figures of SNIA's rule for one window of five rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Mean of the five rounds.
    pub mean: f64,
    /// Difference between maximum and minimum, divided by the mean. At most 0.20 if steady.
    pub excursion: f64,
    /// Absolute change of the least-squares line from the first to the last round, divided by the
    /// mean. At most 0.10 if steady.
    pub slope_excursion: f64,
    /// True if the range criterion is satisfied.
    pub excursion_ok: bool,
    /// True if the slope criterion is satisfied.
    pub slope_ok: bool,
}

impl Window {
    /// Evaluates the rule over five rounds.
    ///
    /// The comparisons avoid division, so that a window exactly at a limit passes if its values are
    /// integers. A window does not pass if a value is not finite, or if the mean is not above zero.
    #[must_use]
    pub fn of(rounds: &[f64; WINDOW_ROUNDS]) -> Self {
        let sum: f64 = rounds.iter().sum();
        let max = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let min = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let range = max - min;
        // With rounds at -2..=2 the slope is `moment / 10`, so the line rises by `4 moment / 10`.
        let moment = (2.0 * (rounds[4] - rounds[0]) + (rounds[3] - rounds[1])).abs();
        let mean = sum / 5.0;
        let usable = sum.is_finite() && sum > 0.0;
        Self {
            mean,
            excursion: range / mean,
            slope_excursion: 0.4 * moment / mean,
            // range <= 0.20 sum / 5, and 0.4 moment <= 0.10 sum / 5.
            excursion_ok: usable && 25.0 * range <= sum,
            slope_ok: usable && 20.0 * moment <= sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(rounds: [f64; 5]) -> (bool, bool) {
        let window = Window::of(&rounds);
        (window.excursion_ok, window.slope_ok)
    }

    #[test]
    fn a_range_of_exactly_a_fifth_passes_and_one_above_does_not() {
        assert_eq!(steady([100.0, 110.0, 100.0, 90.0, 100.0]), (true, true));
        // The mean is 100, and the range is 21.
        assert_eq!(steady([100.0, 111.0, 99.0, 90.0, 100.0]), (false, true));
        // In this window, 0.2 * mean is not exactly representable.
        assert_eq!(steady([1000.0, 1100.0, 1000.0, 900.0, 1000.0].map(|v| v * 7.0)), (true, true));
    }

    #[test]
    fn a_rise_of_exactly_a_tenth_passes_either_way() {
        // The line rises from 95 % to 105 % of the mean, by 10 %.
        let line = [950.0, 975.0, 1000.0, 1025.0, 1050.0];
        assert_eq!(steady(line), (true, true));
        let mut falling = line;
        falling.reverse();
        assert_eq!(steady(falling), (true, true));
        // The line rises from 94.9 % to 105.1 % of the mean, by 10.2 %.
        assert_eq!(steady([949.0, 974.5, 1000.0, 1025.5, 1051.0]), (true, false));
    }

    #[test]
    fn the_slope_is_that_of_least_squares_not_of_the_ends() {
        // The first and last values are equal, but moment = 2 (100 - 100) + (108 - 92) = 16. The
        // line therefore rises by 6.4, with a mean of 100.
        let window = Window::of(&[100.0, 92.0, 100.0, 108.0, 100.0]);
        assert!((window.slope_excursion - 0.064).abs() < 1e-15);
        assert!((window.excursion - 0.16).abs() < 1e-15);
    }

    #[test]
    fn zero_and_damaged_rounds_never_pass() {
        assert_eq!(steady([0.0; 5]), (false, false));
        assert_eq!(steady([f64::NAN, 1.0, 1.0, 1.0, 1.0]), (false, false));
        assert_eq!(steady([f64::INFINITY; 5]), (false, false));
    }
}
