//! Finds the recovery. This is the first interval from which on the load performs as it did before
//! the event.
//!
//! The baseline is the mean rate and the p99 before the event. Two measures compare the intervals
//! of the series with it: the rate must be at least 95 % of the baseline rate, and at most 1 % of
//! the operations may be slower than 1.25 times the baseline p99. A system has recovered at the
//! first interval that meets two conditions, which apply to the hold time after it (a minute, or a
//! quarter of the remaining run if that is shorter). First, the means of both measures over the
//! hold time meet their bounds. Second, no shorter period from its start exceeds a bound by more
//! than the variation of the baseline. If least squares find a step inside the hold time whose
//! first part is below the baseline (D. W. K. Andrews, Econometrica 61 (1993)), the recovery starts
//! at that step.

use crate::stats::Persistence;

/// Minimum rate after recovery, as a fraction of the baseline.
pub const RATE_SHARE: f64 = 0.95;
/// Maximum p99 after recovery, as a multiple of the baseline.
pub const P99_FACTOR: f64 = 1.25;
/// Maximum share of the operations that may be slower than the bound for the p99.
pub const SLOW_SHARE: f64 = 0.01;
/// Hold time: the rate and the latency must stay within their bounds for this time.
pub const HOLD_NS: u64 = 60_000_000_000;
/// Minimum number of intervals in the hold time.
const HOLD_INTERVALS_MIN: usize = 10;
/// Minimum number of intervals before the event. These intervals define the baseline.
const BEFORE_MIN: usize = 10;
/// The mean of a period may be lower than the baseline by at most this number of standard errors.
const Z: f64 = 3.0;
/// A step inside the hold time counts if it reduces the squared error at least by this many
/// variances.
const STEP_FALL_MIN: f64 = 12.0;
/// Maximum standard error of the mean over the hold time, as a share of the baseline rate. With
/// this value, a rate at [`RATE_SHARE`] of the baseline is more than [`Z`] standard errors below
/// it.
const NOISE_MAX: f64 = (1.0 - RATE_SHARE) / Z;

/// Figures of one interval of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Share of the operations slower than [`P99_FACTOR`] times the baseline p99; 1 if no operation
    /// completed.
    pub slow_share: f64,
}

/// Answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Recovery {
    /// The load recovered this number of intervals after the first interval.
    After(usize),
    /// No hold time in the series exists in which the load stayed within its bounds.
    NotWithinRun,
    /// The series does not contain enough data for a decision, for this reason.
    Unknown(String),
}

/// One of the two measures, for each interval. A positive value states by how much the interval is
/// worse than the bound.
struct Deficit {
    values: Vec<f64>,
    /// Standard deviation before the event, increased because of autocorrelation.
    scatter: f64,
    /// Maximum deficit of the mean over the hold time.
    allowance: f64,
}

impl Deficit {
    fn new(before: Vec<f64>, values: Vec<f64>, scatter_min: f64) -> Self {
        let n = before.len() as f64;
        let mean = before.iter().sum::<f64>() / n;
        let square = before.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        // The mean of dependent values scatters more than the mean of independent values.
        let dependence = n / Persistence::of(&before).n_effective.clamp(1.0, n);
        let scatter = (square * dependence).sqrt().max(scatter_min);
        Self { values, scatter, allowance: 0.0 }
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        self.values[from..to].iter().sum::<f64>() / (to - from) as f64
    }

    /// Returns true if the load stays at the baseline level from interval `from` to interval `to`.
    fn holds(&self, from: usize, to: usize) -> bool {
        let mut sum = 0.0;
        let stretches = self.values[from..to].iter().enumerate().all(|(at, value)| {
            sum += value;
            let length = (at + 1) as f64;
            sum / length <= Z * self.scatter / length.sqrt()
        });
        stretches && self.mean(from, to) <= self.allowance
    }

    /// Returns the last step after `from` whose first part is below the baseline.
    fn step(&self, from: usize, to: usize) -> usize {
        let variance = (self.scatter * self.scatter).max(f64::MIN_POSITIVE);
        let mut at = from;
        while at + 2 < to {
            let falls = (at + 1..to - 1).filter_map(|split| {
                let (first, rest) = (self.mean(at, split), self.mean(split, to));
                let (a, b) = ((split - at) as f64, (to - split) as f64);
                let fall = a * b / (a + b) * (first - rest) * (first - rest) / variance;
                (first > 0.0 && rest < first && fall > STEP_FALL_MIN).then_some((fall, split))
            });
            match falls.max_by(|one, other| one.0.total_cmp(&other.0)) {
                Some((_, split)) => at = split,
                None => break,
            }
        }
        at
    }
}

/// Finds the recovery in `since`, which contains the intervals after the start of the last action.
pub fn find(before: &[Sample], since: &[Sample], interval_ns: u64) -> Recovery {
    if before.len() < BEFORE_MIN {
        let count = before.len();
        return Recovery::Unknown(format!(
            "{count} intervals before the event are too few to determine the baseline"
        ));
    }
    let rate = before.iter().map(|sample| sample.rate_per_s).sum::<f64>() / before.len() as f64;
    if rate <= 0.0 {
        return Recovery::Unknown("no operation completed before the event".to_owned());
    }
    let minute = HOLD_NS.div_ceil(interval_ns.max(1)) as usize;
    let hold = minute.min(since.len() / 4);
    if hold < HOLD_INTERVALS_MIN {
        let count = since.len();
        return Recovery::Unknown(format!(
            "{count} intervals after the event are too few: measure longer"
        ));
    }
    let of = |samples: &[Sample], measure: &dyn Fn(&Sample) -> f64| {
        samples.iter().map(measure).collect::<Vec<f64>>()
    };
    let short = |sample: &Sample| RATE_SHARE - sample.rate_per_s / rate;
    let rates = Deficit::new(of(before, &short), of(since, &short), 1e-6);
    let root = (hold as f64).sqrt();
    if rates.scatter / root > NOISE_MAX {
        return Recovery::Unknown(format!(
            "the rate before the event varies by {:.0} %, so the baseline is too uncertain",
            rates.scatter * 100.0
        ));
    }
    let slow = |sample: &Sample| sample.slow_share - SLOW_SHARE;
    let mut slows = Deficit::new(of(before, &slow), of(since, &slow), SLOW_SHARE / 4.0);
    slows.allowance = slows.scatter / root;
    let measures = [&rates, &slows];
    let mut from = 0;
    while from + hold <= since.len() {
        if !measures.iter().all(|measure| measure.holds(from, from + hold)) {
            from += 1;
            continue;
        }
        let moved = measures.iter().map(|measure| measure.step(from, from + hold)).max();
        match moved.filter(|moved| *moved > from) {
            Some(moved) => from = moved,
            None => return Recovery::After(from),
        }
    }
    Recovery::NotWithinRun
}

#[cfg(test)]
mod tests;
