//! Was the system steady while it was measured?
//!
//! The value that is followed is the rate of the workload's own operations, interval by interval. A
//! phase that ends `until-steady` is judged by the very state that ended it
//! ([`UntilSteady`], fed from the series). A phase of fixed length is looked at once: its warm-up is
//! cut, the fifths of the rest must meet SNIA's two criteria (PTS 2.0.2, 2.1.24), and its mean gets
//! the interval that accounts for autocorrelation.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::ResolvedPlan;

use crate::figures::{self, Pick, Sums};
use crate::stats::until_steady::{self, Progress, Rule, Settings, UntilSteady, Writes};
use crate::stats::{self, Refusal, settled_from};

/// Fewest intervals of a measurement that is looked at: below it neither a warm-up nor a drift can
/// be told from noise.
pub const INTERVALS_MIN: usize = 20;

/// Half width of the interval of the mean that ends a measurement `until-steady`, as a share.
pub const RELATIVE_HALF_WIDTH: f64 = 0.05;

/// What the series says of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// `None`: too few intervals to tell.
    pub steady: Option<bool>,
    /// Why it is not steady, or cannot be told; empty for a steady one.
    pub says: String,
    /// First interval of the steady part, from 0.
    pub start: Option<usize>,
    /// Mean rate of the steady part.
    pub rate_per_s: Option<f64>,
    /// Its 95 % interval, where the samples bear one.
    pub interval_per_s: Option<[f64; 2]>,
}

/// How a phase that ends `until-steady` is judged, from its plan: SNIA's five rounds must be over
/// before the first look, and the phase's cap is the last.
///
/// # Errors
/// A plan whose cap is shorter than five rounds, or whose rounds have too few intervals.
pub fn settings(plan: &ResolvedPlan, writes: Option<Writes>) -> Result<Settings, Refusal> {
    let interval_ns = plan.evidence.interval_ns.max(1);
    let count = |ns: u64| usize::try_from(ns / interval_ns).unwrap_or(usize::MAX);
    let rounds = count(plan.phases.round_ns.saturating_mul(5));
    let settings = Settings {
        rule: Rule::Series {
            values_min: rounds.max(INTERVALS_MIN),
            relative_half_width: RELATIVE_HALF_WIDTH,
        },
        values_max: count(plan.phases.measure_ns),
        writes,
    };
    UntilSteady::new(settings).map(|_| settings)
}

/// What the load writes to, where it writes: its bytes count against the data's capacity, those of
/// conditioning included.
pub fn writes(plan: &ResolvedPlan, capacity_bytes: u64, conditioned_bytes: u64) -> Option<Writes> {
    let does = match &plan.workload {
        // A mail store spreads its writes by its own rules; its claim is the requirement, and what
        // a device makes of sustained writes is asked of the matrix.
        plimsoll_plan::Workload::Mailbox(_) => false,
        plimsoll_plan::Workload::Matrix(matrix) => matrix.writes(),
    };
    (does && capacity_bytes > 0).then_some(Writes { capacity_bytes, conditioned_bytes })
}

/// Judges a run's measured phase.
pub fn of(bundle: &Bundle) -> Steadiness {
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let stretches = figures::stretches(bundle, Pick::Transactional, interval_ns);
    if bundle.plan.phases.until_steady {
        return of_ended(bundle, &stretches, interval_ns);
    }
    let rates = figures::rates_per_s(bundle, Pick::Transactional, interval_ns);
    of_fixed(&rates)
}

/// A measurement that ended, or not, by being steady.
fn of_ended(bundle: &Bundle, stretches: &[Sums], interval_ns: u64) -> Steadiness {
    let settings = settings(&bundle.plan, writes_of(bundle));
    let mut state = match settings.and_then(UntilSteady::new) {
        Ok(state) => state,
        Err(refusal) => {
            return Steadiness { says: refusal.to_string(), ..Steadiness::default() };
        }
    };
    let written = figures::stretches(bundle, Pick::DatabaseWrites(None), interval_ns);
    let seconds = interval_ns as f64 / figures::NS_PER_S;
    for (at, sums) in stretches.iter().enumerate() {
        let bytes = written.get(at).map_or(0, |sums| sums.size_bytes);
        state.push(sums.count as f64 / seconds, bytes);
    }
    match state.progress() {
        Progress::Steady(steady) => Steadiness {
            steady: Some(true),
            says: String::new(),
            start: Some(steady.start),
            rate_per_s: steady.interval.map(|i| i.mean).or(Some(steady.window.mean)),
            interval_per_s: steady.interval.map(|i| [i.low, i.high]),
        },
        Progress::NotYet(why) | Progress::Never(why) => Steadiness {
            steady: Some(false),
            says: format!("it never became steady: {why}"),
            ..Steadiness::default()
        },
    }
}

/// What the run's writes are measured against.
pub fn writes_of(bundle: &Bundle) -> Option<Writes> {
    let capacity_bytes = bundle.run.instances.iter().map(|i| i.allocated_bytes).sum();
    let condition = bundle.run.phases.iter().filter(|p| p.kind == PhaseKind::Condition);
    writes(&bundle.plan, capacity_bytes, condition.map(|phase| phase.written_bytes).sum())
}

/// A measurement of fixed length.
pub fn of_fixed(rates: &[f64]) -> Steadiness {
    let unknown = |says: String| Steadiness { says, ..Steadiness::default() };
    if rates.len() < INTERVALS_MIN {
        return unknown(format!(
            "{} intervals were measured, at least {INTERVALS_MIN} are needed to tell",
            rates.len()
        ));
    }
    let not = |says: String| Steadiness { steady: Some(false), says, ..Steadiness::default() };
    let start = match settled_from(rates) {
        Ok(start) => start,
        Err(why @ Refusal::WarmUpTooLong { .. }) => return not(why.to_string()),
        Err(why) => return unknown(why.to_string()),
    };
    let rest = &rates[start..];
    let window = until_steady::fifths(rest);
    if let Err(why) = until_steady::criteria(window) {
        return not(why.to_string());
    }
    let interval = stats::batch_means(rest).ok();
    Steadiness {
        steady: Some(true),
        says: String::new(),
        start: Some(start),
        rate_per_s: Some(rest.iter().sum::<f64>() / rest.len() as f64),
        interval_per_s: interval.map(|i| [i.low, i.high]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ripple(n: usize) -> Vec<f64> {
        (0..n).map(|i| 100.0 + libm::sin(i as f64 * 2.4)).collect()
    }

    #[test]
    fn an_even_rate_is_steady_with_its_interval() {
        let steadiness = of_fixed(&ripple(60));
        assert_eq!((steadiness.steady, steadiness.start), (Some(true), Some(0)));
        let [low, high] = steadiness.interval_per_s.unwrap();
        assert!(low < 100.0 && high > 100.0 && high - low < 2.0, "{low} {high}");
    }

    #[test]
    fn a_rate_that_drifts_is_not_and_few_intervals_do_not_tell() {
        let drifting: Vec<f64> =
            ripple(60).iter().zip(0..).map(|(v, i)| v + f64::from(i)).collect();
        assert_eq!(of_fixed(&drifting).steady, Some(false));
        let few = of_fixed(&ripple(19));
        assert_eq!(few.steady, None);
        assert!(few.says.contains("19 intervals"), "{}", few.says);
    }
}
