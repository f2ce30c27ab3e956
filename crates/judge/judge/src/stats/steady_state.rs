//! Decides when a measurement ends: the rules for `measure = "until-steady"`.
//!
//! The detector receives one value for each interval. Its result is steady, not yet or never, with
//! the reason. It checks the series at geometrically growing lengths. Each check removes the
//! warm-up ([`super::warm_up`]). The fifths of the remaining values must satisfy the two criteria
//! of SNIA PTS 2.0.2 ([`super::snia`]). In addition, the confidence interval of the mean, which
//! accounts for autocorrelation ([`super::batch`]), must be narrow enough.
//!
//! A rule that stops as soon as the interval is narrow often stops when the interval is too narrow
//! by chance (Y. S. Chow and H. Robbins, *On the Asymptotic Theory of Fixed-Width Sequential
//! Confidence Intervals*, 1965). In a test in which each check used a 95 % interval, only 91.7-94.6
//! % of the intervals at the stop contained the true mean. Each check therefore uses a 97.5 %
//! interval. In a test with eight kinds of noise and 3,000 measurements each, 95.3-97.2 % of the
//! reported intervals then contained the true mean.
//!
//! For writes, a period with a steady rate proves little. In five rounds of one minute, a device
//! that is still slowing down may pass, and its rate is then overstated by 88 %. The load must
//! therefore also have written twice the capacity in total, including conditioning (SNIA's
//! preconditioning, PTS 2.2). Within the judged window it must have written the whole capacity
//! once.

use thiserror::Error;

use super::batch::batch_means_at;
use super::interval::{Interval, Refusal};
use super::snia::{WINDOW_ROUNDS, Window};
use super::warm_up::settled_within;

/// Ratio of the lengths of the series at two successive checks.
const LOOK_GROWTH: f64 = 1.5;

/// Confidence of the interval at each check. It is chosen so that the interval at the stop has a
/// confidence of 95 %.
const CONFIDENCE: f64 = 0.975;

/// Maximum bias of the mean that the rest of the warm-up may cause, as a fraction of the target
/// half width.
const BIAS_SHARE: f64 = 0.2;

/// Bytes that must be written before a write load counts as steady, in multiples of the capacity.
pub const CAPACITIES_TOTAL: u64 = 2;

/// Bytes that must be written within the judged window, in multiples of the capacity.
pub const CAPACITIES_WINDOW: u64 = 1;

/// Amounts of data from which the required writes of a write load are computed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteAmounts {
    /// Capacity to which the load writes, in bytes.
    pub capacity_bytes: u64,
    /// Bytes written by conditioning, before the first value.
    pub conditioned_bytes: u64,
}

/// Rule for ending a measurement, with its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Number of values at the first check. The minimum is 20.
    pub values_min: usize,
    /// Maximum half width of the interval at which the measurement stops, as a fraction of the
    /// mean.
    pub relative_half_width: f64,
    /// Number of values after which the measurement ends even if it is not steady (the plan's cap).
    pub values_max: usize,
    /// Amounts for the conditions on writes; `None` if the load does not write.
    pub writes: Option<WriteAmounts>,
}

/// Reason why a measurement is not steady.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum UnsteadyReason {
    /// The first check has not been made yet.
    #[error("only {values} intervals were measured, but at least {needed} are needed")]
    TooFewValues {
        values: usize,
        /// Number of values at which the next check is made.
        needed: usize,
    },
    /// The load wrote too little in total.
    #[error(
        "only {written_bytes} bytes were written since the start of conditioning, but \
         {needed_bytes} are needed: twice the capacity"
    )]
    TooLittleWritten {
        /// Bytes written, including conditioning.
        written_bytes: u64,
        /// Twice the capacity.
        needed_bytes: u64,
    },
    /// The load wrote too little within the window.
    #[error(
        "only {written_bytes} bytes were written since the load settled, but {needed_bytes} are \
         needed: the whole capacity once"
    )]
    TooLittleWrittenInWindow {
        /// Bytes written since the window started.
        written_bytes: u64,
        /// Capacity.
        needed_bytes: u64,
    },
    /// The series did not settle, or an interval cannot be computed.
    #[error("{0}")]
    Refused(Refusal),
    /// The rates in the five parts of the window differ by more than 20 % of their mean.
    #[error(
        "the rates in the latest five parts differ by {:.1} % of their mean, but at most 20 % \
         counts as steady",
        .0.excursion * 100.0
    )]
    Excursion(Window),
    /// The least-squares line through the rates in the five parts rises or falls by more than 10 %
    /// of their mean.
    #[error(
        "the rates in the latest five parts drift by {:.1} % of their mean, but at most 10 % counts \
         as steady",
        .0.slope_excursion * 100.0
    )]
    Drift(Window),
    /// The interval of the mean is wider than required.
    #[error(
        "the uncertainty of the mean is {:.1} %, but at most {:.1} % is allowed",
        relative_half_width * 100.0,
        target * 100.0
    )]
    TooWide {
        /// Half width of the interval as a fraction of the mean.
        relative_half_width: f64,
        /// Maximum half width, as a fraction of the mean.
        target: f64,
    },
}

/// The steady part of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyPart {
    /// Index of the first value of the steady part, from 0.
    pub start: usize,
    /// Index after the last value of the steady part.
    pub end: usize,
    /// Figures of SNIA's criteria for the five parts.
    pub window: Window,
    /// Mean of the steady part with its confidence interval, which takes the stopping rule into
    /// account.
    pub interval: Interval,
}

/// State of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The measurement may stop.
    Steady(SteadyPart),
    /// The measurement continues, with the reason.
    NotYet(UnsteadyReason),
    /// The measurement reached its cap without being steady, with the reason. The run is
    /// INCONCLUSIVE.
    Never(UnsteadyReason),
}

/// Detector that judges a measurement while it runs.
#[derive(Clone, Debug)]
pub struct SteadyStateDetector {
    settings: Settings,
    values: Vec<f64>,
    /// Bytes written before each value and after the last value. There is one entry more than in
    /// `values`.
    written_bytes: Vec<u64>,
    next_look: usize,
    progress: Progress,
}

impl SteadyStateDetector {
    /// Creates a detector without values.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`] if the rule could never be satisfied: fewer than 20 values at the
    /// first check, a half width that is not above 0, or a cap below the first check.
    pub fn new(settings: Settings) -> Result<Self, Refusal> {
        let (first, target) = (settings.values_min, settings.relative_half_width);
        if first < 20 {
            return refuse("number of values at the first check", first as f64);
        }
        if target.is_nan() || target <= 0.0 {
            return refuse("relative half width", target);
        }
        if settings.values_max < first {
            return refuse("maximum number of values", settings.values_max as f64);
        }
        let conditioned = settings.writes.map_or(0, |writes| writes.conditioned_bytes);
        Ok(Self {
            settings,
            values: Vec::new(),
            written_bytes: vec![conditioned],
            next_look: first,
            progress: Progress::NotYet(UnsteadyReason::TooFewValues { values: 0, needed: first }),
        })
    }

    /// Adds the value of one more interval and the bytes that were written during it.
    ///
    /// After the measurement is steady or has reached its cap, further values have no effect.
    pub fn push(&mut self, value: f64, written_bytes: u64) -> &Progress {
        if !matches!(self.progress, Progress::NotYet(_)) {
            return &self.progress;
        }
        self.values.push(value);
        let before = self.written_bytes[self.written_bytes.len() - 1];
        self.written_bytes.push(before.saturating_add(written_bytes));
        let at_cap = self.values.len() >= self.settings.values_max;
        if self.values.len() >= self.next_look || at_cap {
            self.look(at_cap);
        } else if let Progress::NotYet(UnsteadyReason::TooFewValues { values, .. }) =
            &mut self.progress
        {
            *values = self.values.len();
        }
        &self.progress
    }

    /// Returns the state of the measurement.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Judges the current values, and schedules the next check.
    fn look(&mut self, at_cap: bool) {
        let n = self.values.len();
        let (result, next_look) = match self.enough_written(0) {
            // The check is postponed until the load has written enough bytes.
            Err(reason) => (Err(reason), n + 1),
            Ok(()) => (self.judge(), libm::ceil(n as f64 * LOOK_GROWTH) as usize),
        };
        self.next_look = next_look;
        self.progress = match result {
            Ok(steady) => Progress::Steady(steady),
            Err(reason) if at_cap => Progress::Never(reason),
            Err(reason) => Progress::NotYet(reason),
        };
    }

    /// Applies the rule to all values.
    fn judge(&self) -> Result<SteadyPart, UnsteadyReason> {
        let target = self.settings.relative_half_width;
        let start =
            settled_within(&self.values, target * BIAS_SHARE).map_err(UnsteadyReason::Refused)?;
        let rest = &self.values[start..];
        let interval = batch_means_at(rest, CONFIDENCE).map_err(UnsteadyReason::Refused)?;
        let window = fifths(rest);
        criteria(window)?;
        self.enough_written(start)?;
        let relative_half_width = interval.relative_half_width();
        if relative_half_width > target {
            return Err(UnsteadyReason::TooWide { relative_half_width, target });
        }
        Ok(SteadyPart { start, end: self.values.len(), window, interval })
    }

    /// Checks that enough bytes were written in total, and in the window that begins at value
    /// `start`.
    fn enough_written(&self, start: usize) -> Result<(), UnsteadyReason> {
        let Some(writes) = self.settings.writes else { return Ok(()) };
        let total = self.written_bytes[self.written_bytes.len() - 1];
        let needed_bytes = writes.capacity_bytes.saturating_mul(CAPACITIES_TOTAL);
        if total < needed_bytes {
            return Err(UnsteadyReason::TooLittleWritten { written_bytes: total, needed_bytes });
        }
        let written_bytes = total - self.written_bytes[start];
        let needed_bytes = writes.capacity_bytes.saturating_mul(CAPACITIES_WINDOW);
        if written_bytes < needed_bytes {
            return Err(UnsteadyReason::TooLittleWrittenInWindow { written_bytes, needed_bytes });
        }
        Ok(())
    }
}

fn refuse<T>(name: &'static str, value: f64) -> Result<T, Refusal> {
    Err(Refusal::OutOfRange { name, value })
}

/// Returns the five SNIA rounds of a window: the means of its fifths. The window must have at least
/// five values.
pub fn fifths(values: &[f64]) -> Window {
    let n = values.len();
    Window::of(&core::array::from_fn(|i| {
        let part = &values[i * n / WINDOW_ROUNDS..(i + 1) * n / WINDOW_ROUNDS];
        part.iter().sum::<f64>() / part.len() as f64
    }))
}

/// Checks both of SNIA's criteria.
///
/// # Errors
/// [`UnsteadyReason::Excursion`] or [`UnsteadyReason::Drift`] with the window's figures.
pub fn criteria(window: Window) -> Result<(), UnsteadyReason> {
    if !window.excursion_ok {
        Err(UnsteadyReason::Excursion(window))
    } else if !window.slope_ok {
        Err(UnsteadyReason::Drift(window))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values_max: usize, writes: Option<WriteAmounts>) -> Settings {
        Settings { values_min: 60, relative_half_width: 0.05, values_max, writes }
    }

    fn ripple(i: usize) -> f64 {
        100.0 + libm::sin(i as f64 * 2.4)
    }

    #[test]
    fn a_quiet_series_stops_at_the_first_look() {
        let mut state = SteadyStateDetector::new(settings(600, None)).unwrap();
        for i in 0..59 {
            assert!(matches!(state.push(ripple(i), 0), Progress::NotYet(_)), "{i}");
        }
        let Progress::Steady(steady) = state.push(ripple(59), 0).clone() else {
            panic!("{:?}", state.progress())
        };
        assert_eq!((steady.start, steady.end), (0, 60));
        assert!(steady.interval.contains(100.0));
        // The state is final: later values do not change it.
        assert_eq!(state.push(1e9, 0), &Progress::Steady(steady));
    }

    #[test]
    fn a_drifting_series_never_settles_and_says_why() {
        let mut state = SteadyStateDetector::new(settings(200, None)).unwrap();
        for i in 0..200 {
            state.push(ripple(i) + i as f64, 0);
        }
        let Progress::Never(reason) = state.progress() else { panic!("{:?}", state.progress()) };
        assert!(matches!(reason, UnsteadyReason::Refused(_)), "{reason}");
        assert!(!reason.to_string().is_empty());
    }

    #[test]
    fn writes_wait_for_twice_the_capacity_and_once_within_the_window() {
        let writes = Some(WriteAmounts { capacity_bytes: 1000, conditioned_bytes: 1500 });
        let mut state = SteadyStateDetector::new(settings(600, writes)).unwrap();
        let mut stopped = 0;
        for i in 0..600 {
            if let Progress::Steady(_) = state.push(ripple(i), 10) {
                stopped = i + 1;
                break;
            }
        }
        // At the 60th value, the load has written 2,100 bytes, 1,500 of them before the first
        // value: more than twice the capacity. Only at the 100th value has it written the whole
        // capacity since the first value.
        assert_eq!(stopped, 100);
    }

    #[test]
    fn rules_that_can_not_be_met_are_refused() {
        let rejects = |settings| SteadyStateDetector::new(settings).is_err();
        assert!(rejects(settings(59, None)));
        assert!(rejects(Settings { values_min: 19, ..settings(99, None) }));
        assert!(rejects(Settings { relative_half_width: f64::NAN, ..settings(99, None) }));
    }
}
