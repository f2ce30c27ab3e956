//! Judges whether the system was steady during the measurement.
//!
//! The tracked value is the rate of the workload's own operations in each interval. An
//! `until-steady` phase is judged with the rule that ended it ([`SteadyStateDetector`], with values
//! from the series). A phase of fixed length is judged once: its warm-up is removed, and the
//! remaining values are divided into five equal parts, which must satisfy SNIA's two criteria (PTS
//! 2.0.2, 2.1.24). The confidence interval of its mean accounts for autocorrelation.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::series::Data;
use plimsoll_plan::{Condition, ResolvedPlan, Stream};

use crate::figures::{self, Pick};
use crate::stats::snia::WINDOW_ROUNDS;
use crate::stats::steady_state::{self, Progress, Settings, SteadyStateDetector, WriteAmounts};
use crate::stats::{self, Refusal, settled_from};

/// Minimum number of intervals of a measurement. With fewer intervals, neither a warm-up nor a
/// drift can be distinguished from noise.
pub const INTERVALS_MIN: usize = 20;

/// Maximum half width of the mean's confidence interval at the end of an `until-steady`
/// measurement, as a fraction of the mean.
pub const RELATIVE_HALF_WIDTH: f64 = 0.05;

/// Result of judging whether a measurement was steady.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// True if the measurement was steady; `None` if there are too few intervals.
    pub steady: Option<bool>,
    /// Reason why the measurement is not steady or undecided; empty if it is steady.
    pub says: String,
    /// Index of the first interval of the steady part, from 0.
    pub start: Option<usize>,
    /// Mean rate of the steady part, in operations per second.
    pub rate_per_s: Option<f64>,
    /// 95 % confidence interval of this rate; `None` if there are too few samples.
    pub interval_per_s: Option<[f64; 2]>,
}

/// Returns true if the plan ends a phase as soon as it is steady.
pub fn ends_when_steady(plan: &ResolvedPlan, phase: PhaseKind) -> bool {
    match phase {
        PhaseKind::Measure => plan.phases.until_steady,
        PhaseKind::Condition => plan.phases.condition == Condition::RandomOverwrite,
        _ => false,
    }
}

/// Returns the rule for a phase that ends when it is steady. The first check is made after SNIA's
/// five rounds at the earliest, and the last check at the maximum length of the phase (its cap).
///
/// # Errors
/// The plan's cap is shorter than five rounds.
pub fn settings(
    plan: &ResolvedPlan,
    phase: PhaseKind,
    writes: Option<WriteAmounts>,
) -> Result<Settings, Refusal> {
    let interval_ns = plan.evidence.interval_ns.max(1);
    let count = |ns: u64| usize::try_from(ns / interval_ns).unwrap_or(usize::MAX);
    let rounds = count(plan.phases.round_ns.saturating_mul(WINDOW_ROUNDS as u64));
    let cap_ns = match phase {
        PhaseKind::Condition => plan.phases.condition_max_ns,
        _ => plan.phases.measure_ns,
    };
    let settings = Settings {
        values_min: rounds.max(INTERVALS_MIN),
        relative_half_width: RELATIVE_HALF_WIDTH,
        values_max: count(cap_ns),
        writes,
    };
    SteadyStateDetector::new(settings).map(|_| settings)
}

/// Returns the capacity that a phase must write: the working set. `sizes_bytes` contains the data
/// size of each stream. `None` if the phase does not write. Also `None` for a mail store, which is
/// judged by its requirement; only a matrix workload tests a device under sustained writes.
pub fn writes(
    plan: &ResolvedPlan,
    phase: PhaseKind,
    sizes_bytes: &[u64],
    written_bytes: u64,
) -> Option<WriteAmounts> {
    let matrix = plan.workload.matrix()?;
    let does = |stream: &Stream| phase == PhaseKind::Condition || stream.read_percent < 100.0;
    let sets = matrix.streams.iter().zip(sizes_bytes).filter(|(stream, _)| does(stream));
    let capacity_bytes =
        sets.map(|(stream, size)| stream.files.working_set_bytes.unwrap_or(*size)).sum();
    (capacity_bytes > 0)
        .then_some(WriteAmounts { capacity_bytes, conditioned_bytes: written_bytes })
}

/// Judges whether the measured phase of a run was steady.
pub fn of(bundle: &Bundle) -> Steadiness {
    if bundle.plan.phases.until_steady {
        return of_ended(bundle);
    }
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    of_fixed(&figures::rates_per_s(bundle, Pick::Transactional, interval_ns))
}

/// Judges an `until-steady` measurement.
///
/// The function must ignore data that the driver did not have when it decided to end the
/// measurement. Rows of the last intervals may arrive after this decision and would change the
/// result.
fn of_ended(bundle: &Bundle) -> Steadiness {
    if let Some(phase) = figures::measured(bundle).filter(|phase| !phase.reached) {
        let says = if phase.note.starts_with("never became steady") {
            format!("it {}", phase.note)
        } else {
            "it never became steady: the measurement ended early".to_owned()
        };
        return Steadiness { steady: Some(false), says, ..Steadiness::default() };
    }
    let sizes_bytes: Vec<u64> = bundle.run.instances.iter().map(|i| i.allocated_bytes).collect();
    let condition = bundle.run.phases.iter().filter(|p| p.kind == PhaseKind::Condition);
    let conditioned_bytes = condition.map(|phase| phase.written_bytes).sum();
    let phase = PhaseKind::Measure;
    let writes = writes(&bundle.plan, phase, &sizes_bytes, conditioned_bytes);
    let mut state = match settings(&bundle.plan, phase, writes).and_then(SteadyStateDetector::new) {
        Ok(state) => state,
        Err(refusal) => {
            return Steadiness { says: refusal.to_string(), ..Steadiness::default() };
        }
    };
    for (rate_per_s, written_bytes) in whole_intervals(bundle) {
        state.push(rate_per_s, written_bytes);
    }
    match state.progress() {
        Progress::Steady(steady) => Steadiness {
            steady: Some(true),
            says: String::new(),
            start: Some(steady.start),
            rate_per_s: Some(steady.interval.mean),
            interval_per_s: Some([steady.interval.low, steady.interval.high]),
        },
        Progress::NotYet(why) | Progress::Never(why) => Steadiness {
            steady: Some(false),
            says: format!("it never became steady: {why}"),
            ..Steadiness::default()
        },
    }
}

/// Returns the rate and written bytes of each whole interval of the measured phase, as the driver
/// received them. Rows after the last whole interval are skipped, so that driver and judge use the
/// same data.
fn whole_intervals(bundle: &Bundle) -> Vec<(f64, u64)> {
    let Some(measure) = figures::measured(bundle) else { return Vec::new() };
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let mut sums = vec![(0, 0); (measure.duration_ns / interval_ns) as usize];
    let index = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    for row in bundle.series.iter().filter(|row| Some(row.phase as usize) == index) {
        let Data::Class { count, bytes, .. } = row.data else { continue };
        let class = bundle.run.class(&row.name);
        let middle_ns = (row.start_ns + row.duration_ns / 2).saturating_sub(measure.start_ns);
        let slot: Option<&mut (u64, u64)> = sums.get_mut((middle_ns / interval_ns) as usize);
        if let (Some(slot), Some(class)) = (slot, class)
            && Pick::Transactional.includes(class)
        {
            slot.0 += count;
            slot.1 += if Pick::Writes(None).includes(class) { bytes } else { 0 };
        }
    }
    let seconds = interval_ns as f64 / figures::NS_PER_S;
    sums.into_iter().map(|(count, bytes)| (count as f64 / seconds, bytes)).collect()
}

/// Judges a measurement of fixed length.
pub fn of_fixed(rates: &[f64]) -> Steadiness {
    let unknown = |says: String| Steadiness { says, ..Steadiness::default() };
    if rates.len() < INTERVALS_MIN {
        return unknown(format!(
            "only {} intervals were measured, but at least {INTERVALS_MIN} are needed",
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
    let window = steady_state::fifths(rest);
    if let Err(why) = steady_state::criteria(window) {
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
