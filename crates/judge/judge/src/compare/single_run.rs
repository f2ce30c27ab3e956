//! Precision of the rate of a single run, estimated from that run alone.

use super::Side;
use crate::figures::{self, Pick};
use crate::stats::block_bootstrap;

/// Resamples per interval. The ends of a 95 % interval are then the 25th values from either side.
const RESAMPLES: usize = 1000;

/// Describes the rate of a side's only run by a block bootstrap of its intervals, which is valid
/// within a run only. `None` for several runs, whose means are more informative, and for a series
/// that is too short to resample.
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
        "{}: within its only run the mean rate is from {:.1} to {:.1} operations per second (95 \
         %, block bootstrap over {} intervals). One run does not show how much runs differ.",
        side.name,
        interval.low,
        interval.high,
        rates.len()
    ))
}
