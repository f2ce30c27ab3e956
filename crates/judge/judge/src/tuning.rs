//! Computes the load line from the bundles of a search. Each step is a judged run. The result is a
//! pure function of the bundles in their order, so a search can be judged again at any time.

mod neighbour;
mod remarks;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_plan::{Knob, LatencyLimit, ResolvedPlan, VariedLoad, Workload};
use serde::{Deserialize, Serialize};

pub use neighbour::Neighbour;

use crate::checks::STALLS;
use crate::figures::{self, Pick};
use crate::stages;
use crate::stats::Refusal;
use crate::stats::tune::{Goal, Loop, MeasuredLoad, Point, STEPS_MAX, Search, Step};
use crate::steady::{self, Steadiness};
use crate::sweep::PointPlace;
use crate::verdict::{Quantity, Verdict, VerdictKind};

/// Value that replaces a limit of zero stalls: one stall in a thousand seconds.
const STALLS_LEAST: f64 = 1e-3;

/// Smallest and largest load of a search, its maximum number of steps, and the streams whose load
/// it varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Smallest load to measure.
    pub load_min: u64,
    /// Largest load to measure.
    pub load_max: u64,
    /// Maximum number of steps.
    pub steps_max: usize,
    /// Streams whose load the search varies. If empty, it varies all streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// Number of hosts that each issue the whole load; 1 for a single host, or if the hosts of a
    /// fleet share the load.
    #[serde(default = "one_host", skip_serializing_if = "is_one_host")]
    pub hosts: u32,
}

fn one_host() -> u32 {
    1
}

fn is_one_host(hosts: &u32) -> bool {
    *hosts == 1
}

impl Range {
    /// Returns the range from 1 to `load_max`. The search may use the maximum number of steps.
    pub fn up_to(load_max: u64) -> Self {
        Self { load_min: 1, load_max, steps_max: STEPS_MAX, vary: Vec::new(), hosts: 1 }
    }
}

/// A step of a search: a run at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuneStep {
    /// Identifier of the run.
    pub run_id: String,
    /// Load: threads, queue depth or offered rate.
    pub load: u64,
    /// Achieved rate; `None` if nothing was measured.
    pub rate_per_s: Option<f64>,
    /// 95 % confidence interval of the rate; `None` if there are too few samples.
    pub rate_interval_per_s: Option<[f64; 2]>,
    /// Latencies in the order of [`Tuning::latencies`]; `None` if not measured.
    pub latencies_ns: Vec<Option<f64>>,
    /// Page-fault stalls per second; `None` if not counted.
    pub stalls_per_s: Option<f64>,
    /// True if no latency ceiling was exceeded, including the limit on stalls; `None` if a value
    /// was not measured.
    pub within: Option<bool>,
    /// True if the system was steady; `None` if the intervals are not sufficient for a decision.
    pub steady: Option<bool>,
    /// Reason why the step was not steady, or another problem of the run; empty if there was no
    /// problem.
    pub note: String,
    /// Verdict on the run.
    pub verdict: VerdictKind,
    /// Reason for the verdict.
    #[serde(default)]
    pub reason: String,
    /// CPU time per operation of the load generator, including kernel time.
    pub cpu_ns_per_op: Option<f64>,
    /// Workload in words, without the load; empty in results of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub does: String,
    /// Host, storage and time of the run; `None` in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PointPlace>,
}

/// A latency that each step measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Name such as `db_read_latency_avg`.
    pub name: String,
    /// Ceiling; `None` if the latency is shown but not judged.
    pub ceiling_ns: Option<f64>,
}

/// A search with its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Name of the plan.
    pub name: String,
    /// Parameter that the search varies.
    pub knob: Knob,
    /// Range of loads.
    pub range: Range,
    /// Streams of the plan, if the search varies only some of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// Latencies that each step measures.
    pub latencies: Vec<Latency>,
    /// Maximum page-fault stalls per second, if the plan has a limit.
    pub stalls_max_per_s: Option<f64>,
    /// Required rate.
    pub required_per_s: Option<f64>,
    /// True if the plan states a requirement.
    #[serde(default)]
    pub has_requirement: bool,
    /// Steps in the order of execution.
    pub steps: Vec<TuneStep>,
    /// True if the search finished.
    pub complete: bool,
    /// Load with the highest rate within every latency ceiling; `None` if every step exceeded a
    /// ceiling.
    pub load_line: Option<MeasuredLoad>,
    /// True if the load line was measured twice and the neighbouring loads on both sides were
    /// measured too.
    pub confirmed: bool,
    /// Load with the largest ratio of throughput to latency.
    pub knee: Option<MeasuredLoad>,
    /// Minimum number of threads (or depth) that achieves the requirement. `None` if there is no
    /// requirement, if no load achieves it, or in an open loop.
    #[serde(rename = "fewest")]
    pub required_load: Option<MeasuredLoad>,
    /// True if a slightly smaller load was measured and does not achieve the requirement.
    #[serde(rename = "fewest_checked")]
    pub required_load_checked: bool,
    /// Remarks, for example that the curve falls or that the search was interrupted.
    pub remarks: Vec<String>,
}

impl Tuning {
    /// Returns the verdict on the search.
    ///
    /// PASS requires a step that achieves the required rate and whose own verdict is PASS. FAIL
    /// means that no load meets the latency ceilings, or that no load within the ceilings achieves
    /// the required rate. INCONCLUSIVE has three causes: an interrupted search, a load that never
    /// became steady and may achieve the required rate, or only undecided steps that achieve it.
    pub fn verdict(&self) -> VerdictKind {
        if self.steps.iter().any(|step| step.verdict == VerdictKind::Invalid) {
            return VerdictKind::Invalid;
        }
        let met = match (self.load_line, self.required_per_s) {
            (None, _) => false,
            (Some(line), Some(required)) => line.rate_per_s >= required,
            (Some(_), None) => true,
        };
        if !self.complete || !met && self.unsettled_step().is_some() {
            return VerdictKind::Inconclusive;
        }
        if !met {
            return VerdictKind::Fail;
        }
        if !self.has_requirement {
            return VerdictKind::Measured;
        }
        let is = |kind| move |step: &&TuneStep| step.verdict == kind;
        if self.sufficient_steps().any(|step| is(VerdictKind::Pass)(&step)) {
            VerdictKind::Pass
        } else if self.sufficient_steps().any(|step| is(VerdictKind::Inconclusive)(&step)) {
            VerdictKind::Inconclusive
        } else {
            VerdictKind::Fail
        }
    }

    /// Returns the steps that achieved the required rate and exceeded no latency ceiling.
    fn sufficient_steps(&self) -> impl Iterator<Item = &TuneStep> {
        let required_per_s = self.required_per_s.unwrap_or(0.0);
        self.steps.iter().filter(move |step| {
            step.within != Some(false) && step.rate_per_s.is_some_and(|rate| rate >= required_per_s)
        })
    }
}

impl Tuning {
    /// Returns the fastest step whose rate is above the rate of the load line, but whose load was
    /// never steady. Steps that exceeded a latency ceiling are skipped. The long-term rate of this
    /// load is unknown.
    fn unsettled_step(&self) -> Option<&TuneStep> {
        let line_per_s = self.load_line.map_or(0.0, |line| line.rate_per_s);
        let settled = |load: u64| self.steps.iter().any(|s| s.load == load && self.is_settled(s));
        let open = |step: &&TuneStep| {
            step.within != Some(false)
                && step.verdict != VerdictKind::Invalid
                && step.rate_per_s.is_some_and(|rate| rate > line_per_s * (1.0 + GAIN_MIN))
                && !settled(step.load)
        };
        let rate = |step: &TuneStep| step.rate_per_s.unwrap_or(0.0);
        self.steps.iter().filter(open).max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }
}

/// A search in progress: returns the next load and the current results.
#[derive(Clone, Debug)]
pub struct Tuner {
    load: VariedLoad,
    search: Search,
    tuning: Tuning,
}

impl Tuner {
    /// Creates a search over the loads of `range` for a plan's requirement.
    ///
    /// # Errors
    /// The plan has no load that can be varied, or the range is empty. The error is a sentence.
    pub fn new(plan: &ResolvedPlan, range: Range) -> Result<Self, String> {
        let load = VariedLoad::of(plan, &range.vary)?;
        let knob = load.knob();
        let neighbour = Neighbour::of(plan, &range.vary)?;
        // If the search varies a neighbour, the verdict of a step already includes all limits, so
        // the search itself checks no limits.
        let required = plan.requirement.as_ref().filter(|_| neighbour.is_none());
        let latencies = match &neighbour {
            Some(_) => neighbour::latencies(plan),
            None => latencies(plan),
        };
        let required_per_s = required.and_then(|r| r.iops_per_s);
        let stalls_max_per_s = required.and_then(|r| r.page_fault_stalls_max_per_s);
        let mut ceilings: Vec<f64> = latencies.iter().filter_map(|l| l.ceiling_ns).collect();
        // The limit on stalls is added to the latency ceilings, because the search treats all
        // ceilings in the same way, regardless of their units.
        ceilings.extend(stalls_max_per_s.map(|limit| limit.max(STALLS_LEAST)));
        if neighbour.is_some() {
            ceilings = vec![neighbour::CEILING];
        }
        let is_open = knob.is_open() && neighbour.is_none();
        let goal = Goal {
            issue: if is_open { Loop::Open } else { Loop::Closed },
            hosts: range.hosts,
            load_min: range.load_min,
            load_max: range.load_max,
            ceilings_ns: ceilings,
            required_per_s: required_per_s.filter(|rate| *rate > 0.0),
            steps_max: range.steps_max,
        };
        let search = Search::new(goal).map_err(|refusal: Refusal| refusal.to_string())?;
        let tuning = Tuning {
            name: plan.name.clone(),
            knob,
            range,
            neighbour,
            latencies,
            stalls_max_per_s,
            required_per_s,
            has_requirement: plan.requirement.is_some(),
            steps: Vec::new(),
            complete: false,
            load_line: None,
            confirmed: false,
            knee: None,
            required_load: None,
            required_load_checked: false,
            remarks: Vec::new(),
        };
        Ok(Self { load, search, tuning })
    }

    /// Returns the next load to measure, with the purpose of the measurement; `None` if the search
    /// is complete.
    pub fn next_load(&self) -> Option<(u64, crate::stats::tune::Purpose)> {
        match self.search.next_step() {
            Step::Measure { load, purpose } => Some((load, purpose)),
            Step::Done(_) => None,
        }
    }

    /// Records a step's run. An interrupted or failed run is listed, but the search ignores its
    /// figures.
    pub fn record(&mut self, bundle: &Bundle, verdict: &Verdict) {
        let step = self.step(bundle, verdict);
        let completed = bundle.run.end.kind == EndKind::Completed;
        if completed && self.tuning.neighbour.is_some() {
            self.search.record(self.tuning.neighbour_point(&step));
        } else if completed {
            let judged = self.tuning.latencies.iter().zip(&step.latencies_ns);
            let known = |ns: Option<f64>| ns.unwrap_or(f64::INFINITY);
            let ceilings = judged.filter(|(latency, _)| latency.ceiling_ns.is_some());
            let mut strained: Vec<f64> = ceilings.map(|(_, ns)| known(*ns)).collect();
            strained.extend(self.tuning.stalls_max_per_s.map(|_| known(step.stalls_per_s)));
            self.search.record(Point {
                load: step.load,
                throughput_per_s: step.rate_per_s.unwrap_or(0.0),
                latencies_ns: strained,
                steady: step.steady == Some(true),
            });
        }
        self.tuning.steps.push(step);
    }

    fn step(&self, bundle: &Bundle, verdict: &Verdict) -> TuneStep {
        let Tuning { latencies, stalls_max_per_s, .. } = &self.tuning;
        // If a neighbour starts or ends during the run, the total rate changes, so steadiness
        // cannot be judged.
        let is_whole = self.tuning.neighbour.is_none();
        let steadiness = if is_whole { steady::of(bundle) } else { Steadiness::default() };
        let latencies_ns: Vec<Option<f64>> =
            latencies.iter().map(|latency| latency_ns(bundle, verdict, latency)).collect();
        let stalls_per_s = stalls_per_s(verdict);
        let kept = latencies.iter().zip(&latencies_ns).filter_map(|(latency, ns)| {
            let ceiling = latency.ceiling_ns?;
            Some(ns.map(|ns| ns <= ceiling))
        });
        let stalled = stalls_max_per_s.map(|limit| stalls_per_s.map(|rate| rate <= limit));
        let mut notes = vec![match verdict.verdict {
            VerdictKind::Invalid => format!("INVALID: {}", verdict.reason),
            kind if !is_whole && kind != VerdictKind::Pass => {
                let reason = &verdict.reason;
                format!("{kind}, {}", reason.strip_prefix("modelled: ").unwrap_or(reason))
            }
            _ if bundle.run.end.kind != EndKind::Completed => bundle.run.end.says.clone(),
            _ => steadiness.says.clone(),
        }];
        if let (Some(Some(false)), Some(rate)) = (stalled, stalls_per_s) {
            notes.push(format!("{rate:.1} page-fault stalls per second"));
        }
        let load = self.load.load(&bundle.plan);
        let rate_per_s = match is_whole {
            true => figures::rate_per_s(bundle, Pick::Transactional),
            false => neighbour::rate_per_s(bundle, &self.tuning.range.vary),
        };
        let within = match verdict.verdict {
            // An INVALID run can show that a latency ceiling was exceeded, but not that it was met.
            VerdictKind::Invalid if is_whole => all(kept.chain(stalled)).filter(|within| !within),
            _ if is_whole => all(kept.chain(stalled)),
            _ if !self.tuning.achieved(load, rate_per_s) => {
                notes.push("the storage did not sustain the neighbour's rate".to_owned());
                Some(false)
            }
            VerdictKind::Pass => Some(true),
            VerdictKind::Fail => Some(false),
            _ => None,
        };
        notes.retain(|note| !note.is_empty());
        TuneStep {
            run_id: bundle.run.run_id.clone(),
            load,
            rate_per_s,
            rate_interval_per_s: steadiness.interval_per_s,
            within,
            latencies_ns,
            stalls_per_s,
            steady: steadiness.steady,
            note: notes.join("; "),
            verdict: verdict.verdict,
            reason: verdict.reason.clone(),
            cpu_ns_per_op: figures::cpu_ns_per_op(bundle),
            does: stages::transfers(&bundle.plan),
            place: Some(PointPlace::of(bundle)),
        }
    }

    /// Returns the current results.
    pub fn tuning(&self) -> Tuning {
        let mut tuning = self.tuning.clone();
        tuning.complete = self.next_load().is_none();
        let outcome = self.search.outcome();
        tuning.load_line = outcome.load_line;
        tuning.confirmed = outcome.confirmed;
        tuning.knee = outcome.knee.filter(|_| tuning.neighbour.is_none());
        tuning.required_load = outcome.required_load;
        tuning.required_load_checked = outcome.required_load_checked;
        if let (Some(_), Some(line)) = (&tuning.neighbour, &mut tuning.load_line) {
            // This search maximised the load, so the outcome does not contain a measured rate.
            let of_line = tuning.steps.iter().filter(|step| step.load == line.load);
            let rates: Vec<f64> = of_line.filter_map(|step| step.rate_per_s).collect();
            line.rate_per_s = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        }
        // If a faster load never became steady, the load line is only a lower bound of the
        // sustained load.
        tuning.confirmed &= tuning.neighbour.is_some() || tuning.unsettled_step().is_none();
        tuning.remarks = match tuning.neighbour {
            Some(_) => tuning.neighbour_remarks(),
            None => remarks::remarks(&tuning, &outcome),
        };
        if !tuning.complete {
            tuning
                .remarks
                .push(format!("The search was interrupted after {} steps.", outcome.steps));
        }
        tuning
    }
}

/// Judges a search again from its bundles, in their order.
///
/// # Errors
/// The errors of [`Tuner::new`].
pub fn rejudge(
    plan: &ResolvedPlan,
    range: Range,
    steps: &[(&Bundle, &Verdict)],
) -> Result<Tuning, String> {
    let mut tuner = Tuner::new(plan, range)?;
    for (bundle, verdict) in steps {
        tuner.record(bundle, verdict);
    }
    Ok(tuner.tuning())
}

/// Returns the latencies that have ceilings. If there are no ceilings, returns the default latency
/// for display.
fn latencies(plan: &ResolvedPlan) -> Vec<Latency> {
    let limits = plan.requirement.iter().flat_map(|r| &r.limits);
    let judged: Vec<Latency> = limits
        .map(|limit: &LatencyLimit| Latency {
            name: limit.name.clone(),
            ceiling_ns: Some(limit.limit_ns as f64),
        })
        .collect();
    if !judged.is_empty() {
        return judged;
    }
    let name = match plan.workload {
        Workload::Mailbox(_) => "db_read_latency_avg",
        Workload::Matrix(_) => "latency_avg",
    };
    vec![Latency { name: name.to_owned(), ceiling_ns: None }]
}

/// Returns true if all limits are met; `None` if a limit is undecided and no limit is exceeded.
fn all(kept: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<Option<bool>> = kept.collect();
    if answers.contains(&Some(false)) {
        return Some(false);
    }
    (!answers.contains(&None)).then_some(true)
}

fn stalls_per_s(verdict: &Verdict) -> Option<f64> {
    let check = verdict.checks.iter().find(|check| check.name == STALLS)?;
    match check.quantity {
        Quantity::Rate { measured_per_s, .. } => measured_per_s,
        _ => None,
    }
}

/// Returns a latency from the check in the run's verdict. If there is no such check, returns the
/// mean latency of all operations.
fn latency_ns(bundle: &Bundle, verdict: &Verdict, latency: &Latency) -> Option<f64> {
    let check = verdict.checks.iter().find(|check| check.name == latency.name);
    match check.map(|check| check.quantity) {
        Some(Quantity::Latency { measured_ns, .. }) => measured_ns.map(|ns| ns as f64),
        Some(_) => None,
        None => {
            let pick = match bundle.plan.workload {
                Workload::Mailbox(_) => Pick::DatabaseReads(None),
                Workload::Matrix(_) => Pick::Transactional,
            };
            figures::totals(bundle, pick).mean_ns().map(|ns| ns as f64)
        }
    }
}

/// Minimum gain over the load line that justifies another step of the search.
const GAIN_MIN: f64 = 0.03;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::judge;
    use crate::rules::fixtures;

    #[test]
    fn a_search_passes_only_where_a_step_that_carries_the_requirement_passes() {
        let bundle = fixtures::reads_with("[target]", "[requirement]\niops = 9000\n[target]");
        let step_with = |change: &dyn Fn(&mut Bundle)| {
            let mut bundle = bundle.clone();
            change(&mut bundle);
            let tuner = Tuner::new(&bundle.plan, Range::up_to(8)).unwrap();
            let mut tuning = tuner.tuning();
            tuning.steps = vec![tuner.step(&bundle, &judge(&bundle))];
            (tuning.complete, tuning.load_line) =
                (true, Some(MeasuredLoad { load: 8, rate_per_s: 10_000.0, measurements: 2 }));
            tuning.verdict()
        };
        assert_eq!(step_with(&|_| {}), VerdictKind::Pass);
        // The outcome of the rule about the page cache is unknown.
        let unseen = |bundle: &mut Bundle| {
            bundle.run.engine.paths[0].direct = false;
            bundle.observed = Default::default();
        };
        assert_eq!(step_with(&unseen), VerdictKind::Inconclusive);
        // The search does not use the limit on bandwidth, but the verdict of the step includes it.
        let bandwidth = |bundle: &mut Bundle| {
            let requirement = bundle.plan.requirement.as_mut().unwrap();
            requirement.bandwidth_bytes_per_s = Some(900_000_000_000);
        };
        assert_eq!(step_with(&bandwidth), VerdictKind::Fail);
    }

    #[test]
    fn an_invalid_step_shows_no_kept_ceiling() {
        let bundle = fixtures::reads();
        let within = |kind: VerdictKind| {
            let tuner = Tuner::new(&bundle.plan, Range::up_to(8)).unwrap();
            tuner.step(&bundle, &Verdict { verdict: kind, ..judge(&bundle) }).within
        };
        assert_eq!(within(VerdictKind::Measured), Some(true));
        assert_eq!(within(VerdictKind::Invalid), None);
    }
}
