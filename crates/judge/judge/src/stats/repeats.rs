//! Summary of several runs of one experiment.
//!
//! The headline is the mean with its confidence interval. The best run is never used as the result:
//! in one test, the best of seven runs was 40 % above the median. The spread is reported with the
//! mean, because an interval from three runs is imprecise, whereas a spread of 30 % is a clear
//! warning.

use super::interval::{Interval, Refusal, require_finite};
use super::moments::Moments;
use super::student::t_factor;

/// Summary of the runs of an experiment, in the unit of the metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeats {
    pub runs: usize,
    /// Mean over the runs.
    pub mean: f64,
    /// 95 % confidence interval of the mean over the runs (Student's t). `None` for a single run,
    /// because its repeatability is unknown.
    pub interval: Option<Interval>,
    /// Difference between maximum and minimum, divided by the mean; `None` if there is a single run
    /// or the mean is zero.
    pub spread: Option<f64>,
    /// Standard deviation between runs, divided by the mean; `None` in the same cases as `spread`.
    pub variation: Option<f64>,
}

/// Summarises a figure over several runs. `runs` contains one value for each run.
///
/// # Errors
/// [`Refusal::TooFewValues`] if there are no runs, [`Refusal::NotFinite`].
pub fn repeats(runs: &[f64]) -> Result<Repeats, Refusal> {
    require_finite(runs)?;
    let moments = Moments::of(runs);
    let Some(mean) = moments.mean() else {
        return Err(Refusal::TooFewValues { n: 0, needed: 1 });
    };
    let n = runs.len();
    let interval = moments.standard_deviation().map(|deviation| {
        let half = t_factor(0.95, (n - 1) as f64) * deviation / libm::sqrt(n as f64);
        Interval::symmetric(mean, half, n, n as f64)
    });
    let max = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let min = runs.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = (n > 1 && mean != 0.0).then(|| (max - min) / mean.abs());
    Ok(Repeats { runs: n, mean, interval, spread, variation: moments.coefficient_of_variation() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_runs_have_a_wide_interval_and_their_spread() {
        let summary = repeats(&[90.0, 100.0, 110.0]).unwrap();
        assert_eq!((summary.runs, summary.mean, summary.spread), (3, 100.0, Some(0.2)));
        // The half width is t(0.975, 2) = 4.302653, multiplied by 10 / sqrt(3).
        assert!((summary.interval.unwrap().half_width - 24.841_377).abs() < 1e-5);
        assert_eq!(summary.variation, Some(0.1));
    }

    #[test]
    fn one_run_says_nothing_about_repeatability() {
        let summary = repeats(&[90.0]).unwrap();
        assert_eq!((summary.mean, summary.interval, summary.spread), (90.0, None, None));
        assert_eq!(summary.variation, None);
        assert!(repeats(&[]).is_err());
        assert_eq!(repeats(&[0.0, 0.0]).unwrap().spread, None);
    }
}
