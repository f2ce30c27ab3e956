//! Precision of the rate of a single run, estimated from that run alone.

use super::Side;
use crate::figures::{self, Pick};
use crate::stats::block_bootstrap;

/// Number of resamples for a confidence interval. With 1,000 resamples, the ends of a 95 % interval
/// are the 25th smallest and the 25th largest mean.
const RESAMPLES: usize = 1000;

/// If a side of the comparison has a single run, describes the precision of its mean rate,
/// estimated by a block bootstrap of the run's intervals. The estimate includes only the variation
/// within the run. `None` if there are several runs, because their means show more, or if the
/// series is too short.
pub(super) fn describe_rate(side: &Side<'_>) -> Option<String> {
    let mut completed = side.completed();
    let (bundle, _) = completed.next()?;
    if completed.next().is_some() {
        return None;
    }
    let plan = &bundle.plan;
    let rates = figures::rates_per_s(bundle, Pick::Transactional, plan.evidence.interval_ns.max(1));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let interval = block_bootstrap(&rates, mean, 0.95, RESAMPLES, plan.seed).ok()?;
    Some(format!(
        "{}: the mean rate of the only run is between {:.1} and {:.1} operations per second (95 % \
         confidence, block bootstrap over {} intervals). A single run does not show the variation \
         between runs.",
        side.name,
        interval.low,
        interval.high,
        rates.len()
    ))
}
