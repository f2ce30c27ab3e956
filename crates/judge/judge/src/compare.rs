//! Comparison of two or more experiments.
//!
//! The requirement is checked first: if both sides meet it with headroom, the difference between
//! them should not decide. The conditions are checked next: if they differ, there is no winner,
//! unless the user accepted each difference. There is also no winner if a rule that affects
//! comparisons fails or is unknown in any run, unless the user accepted the rule by name. The last
//! step is the ratio of the runs' means with its confidence interval (Welch's t-test on the
//! logarithms, [`crate::stats::welch`]). The difference is significant if it exceeds the scatter of
//! the runs. With fewer than four runs per side, no difference is significant.

mod cells;
mod conditions;
mod decide;
mod doubt;
mod explanation;
mod fleets;
mod gate;
mod single_run;

pub use cells::{
    CellFigure, CellOutcome, IntervalOf, Overall, SweepCell, SweepComparison, compare_sweeps,
};
pub use conditions::{ConditionDifference, best_practice, differing_conditions};
pub use decide::{Outcome, RequirementResult};
pub use explanation::{Cause, Divergence, Explanation};
pub use fleets::{FleetRun, FleetSide, compare_fleets};
pub use gate::{AllowanceError, Allowances, Gate, GateFigure, GateOutcome, gate, percent};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use serde::{Deserialize, Serialize};

use crate::events::{NoRecovery, Windows};
use crate::figures::NS_PER_S;
use crate::finding::{Finding, Outcome as FindingOutcome};
use crate::metrics::{self, ByCpu, Figure, FigureUnit};
use crate::rules;
use crate::stages;
use crate::stats::welch::{RUNS_MIN, compare_at};
use crate::stats::{Moments, repeats};
use crate::sweep::PointPlace;
use crate::verdict::{Verdict, VerdictKind};
use crate::words::many;

/// Confidence level of the intervals. If there are more than two sides, all comparisons together
/// may err with the remaining probability.
const CONFIDENCE: f64 = 0.95;

/// One side of the comparison: the runs of an experiment with their verdicts.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// Display name.
    pub name: String,
    pub runs: Vec<(&'a Bundle, &'a Verdict)>,
}

impl Side<'_> {
    /// Returns the completed runs. The comparison lists incomplete runs but does not use them.
    fn completed(&self) -> impl Iterator<Item = &(&Bundle, &Verdict)> {
        self.runs.iter().filter(|(bundle, _)| bundle.run.end.kind == EndKind::Completed)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideFigure {
    /// The figure's value in each completed run.
    pub values: Vec<f64>,
    /// Geometric mean, because the ratio of two sides is the ratio of these means. Arithmetic
    /// mean if a value is 0 or negative, because there is no geometric mean then.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean (Student's t, on the logarithms).
    pub interval: Option<[f64; 2]>,
    /// Relative spread of the runs: largest minus smallest value, divided by the mean.
    pub spread: Option<f64>,
    /// Mean of this side divided by the mean of the first side of the comparison.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio.
    pub ratio_interval: Option<[f64; 2]>,
    /// True if the ratio differs from 1 by more than the scatter of the runs; `None` if there are
    /// too few runs.
    pub significant: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Key in JSON.
    pub key: String,
    /// Display name.
    pub name: String,
    /// True if higher values are better.
    pub higher_is_better: bool,
    /// True if the figure is an estimate, adjusted for the speed of each side's CPU.
    pub estimate: bool,
    /// The figure on each side of the comparison.
    pub sides: Vec<SideFigure>,
    /// The difference in words.
    pub says: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Names of the sides of the comparison. The first side is the baseline for the other sides.
    pub names: Vec<String>,
    /// Conclusion of the comparison.
    pub outcome: Outcome,
    /// Name of the winner; `None` if no side of the comparison wins.
    pub winner: Option<String>,
    /// Headline sentence.
    pub reason: String,
    /// Reason why the runs cannot be compared, whatever their figures are: different conditions, a
    /// failed or unknown rule, or an incomplete run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Key of the deciding figure: the rate, or the first latency in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<String>,
    /// For each side of the comparison: how many of its runs meet the requirement.
    #[serde(rename = "standings")]
    pub requirement_results: Vec<RequirementResult>,
    /// The figures.
    pub metrics: Vec<Metric>,
    /// Conditions that differ.
    #[serde(rename = "unlike")]
    pub differences: Vec<ConditionDifference>,
    /// Explains where the two sides diverge, and of which parts their difference consists. `None`
    /// if there are more than two sides, or if a side of the comparison has no run.
    #[serde(default, rename = "why", skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// Remarks on skipped runs and on estimated figures.
    pub remarks: Vec<String>,
    /// All runs of all sides, each with its plan, place and time. Empty in comparisons made by
    /// older versions, which did not record them.
    #[serde(default, rename = "measured", skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ComparedRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    pub side: String,
    pub run_id: String,
    pub plan: String,
    /// Workload in words; empty in comparisons made by older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub does: String,
    /// Place and time of the measurement.
    pub place: PointPlace,
}

impl ComparedRun {
    fn all(sides: &[Side<'_>]) -> Vec<Self> {
        let of = |side: &Side<'_>| -> Vec<Self> {
            let one = |(bundle, _): &(&Bundle, &Verdict)| Self {
                side: side.name.clone(),
                run_id: bundle.run.run_id.clone(),
                plan: bundle.run.name.clone(),
                does: stages::does(&bundle.plan),
                place: PointPlace::of(bundle),
            };
            side.runs.iter().map(one).collect()
        };
        sides.iter().flat_map(of).collect()
    }
}

/// Compares two or more sides that differ on purpose. The subject of the comparison is `factors`,
/// together with the factors that the plans of all sides name. Differences other than these factors
/// count as unlike conditions.
pub fn compare(sides: &[Side<'_>], accepted: &[String], factors: &[String]) -> Comparison {
    let named = accepted;
    let mut factors = [factors, &conditions::factors_of_plans(sides)].concat();
    factors.sort();
    factors.dedup();
    let factors = &factors[..];
    let accepted = &[accepted, factors].concat()[..];
    let differences = differing_conditions(sides, accepted, factors);
    let metrics = metrics_of(sides);
    let requirements: Vec<RequirementResult> =
        sides.iter().map(decide::requirement_result).collect();
    let decision = decide::decide(sides, &requirements, &metrics, &differences, accepted);
    let mut remarks = remarks(sides, &metrics, &differences, named);
    remarks.extend(equal_factors(&differences, factors));
    Comparison {
        names: sides.iter().map(|side| side.name.clone()).collect(),
        explanation: explanation::explain(sides, &differences),
        outcome: decision.outcome,
        winner: decision.winner,
        reason: decision.reason,
        doubt: decide::doubt(sides, &differences, accepted),
        judged: decide::judged(sides, &metrics).map(|metric| metric.key.clone()),
        requirement_results: requirements,
        remarks,
        metrics,
        differences,
        runs: ComparedRun::all(sides),
    }
}

fn metrics_of(sides: &[Side<'_>]) -> Vec<Metric> {
    let Some(first) = sides.iter().find_map(|side| side.runs.first()) else { return Vec::new() };
    let scores: Option<Vec<f64>> = sides.iter().map(score).collect();
    let mut metrics = Vec::new();
    for figure in metrics::of(&first.0.plan.workload) {
        let values: Vec<Vec<f64>> = sides.iter().map(|side| values(side, figure)).collect();
        if values.iter().all(Vec::is_empty) {
            continue;
        }
        metrics.push(metric(figure, &values, false));
        if let Some(scores) = scores.as_ref().filter(|_| figure.by_cpu != ByCpu::Unknown) {
            metrics.push(metric(figure, &adjusted(figure, &values, scores), true));
        }
    }
    metrics
}

fn values(side: &Side<'_>, figure: &Figure) -> Vec<f64> {
    side.completed().filter_map(|(bundle, _)| (figure.of)(bundle)).collect()
}

/// Returns the mean single-core score of a side's hosts, measured at the start of each run. `None`
/// if a host has no score.
fn score(side: &Side<'_>) -> Option<f64> {
    let scores: Option<Vec<f64>> =
        side.runs.iter().map(|(bundle, _)| bundle.environment.cpu_score).collect();
    Moments::of(&scores?).mean().filter(|score| *score > 0.0)
}

/// Scales the values to the CPU speed of the first side of the comparison, on the assumption that
/// only the CPU limits them.
fn adjusted(figure: &Figure, values: &[Vec<f64>], scores: &[f64]) -> Vec<Vec<f64>> {
    let reference = scores[0];
    let factor = |score: f64| match figure.by_cpu {
        ByCpu::Grows => reference / score,
        ByCpu::Shrinks => score / reference,
        ByCpu::Unknown => 1.0,
    };
    let scale = |(values, score): (&Vec<f64>, &f64)| {
        values.iter().map(|value| value * factor(*score)).collect()
    };
    values.iter().zip(scores).map(scale).collect()
}

fn metric(figure: &Figure, values: &[Vec<f64>], estimate: bool) -> Metric {
    let called = if estimate {
        let key = format!("{}_cpu_adjusted_estimate", figure.key);
        (key, format!("{}, adjusted for CPU (estimate)", figure.name))
    } else {
        (figure.key.to_owned(), figure.name.to_owned())
    };
    metric_as(called, figure.higher_is_better, figure.unit, values, estimate)
}

fn metric_as(
    (key, name): (String, String),
    higher_is_better: bool,
    unit: FigureUnit,
    values: &[Vec<f64>],
    estimate: bool,
) -> Metric {
    let others = (values.len() - 1).max(1) as f64;
    // Bonferroni correction: all comparisons with the first side share the risk of a false
    // difference.
    let confidence = 1.0 - (1.0 - CONFIDENCE) / others;
    let first = values.first().map_or(&[][..], Vec::as_slice);
    let side = |(at, values): (usize, &Vec<f64>)| {
        let together = repeats(values).ok();
        let mean = mean(values);
        let mut side = SideFigure {
            values: values.clone(),
            mean: mean.map(|(mean, _)| mean),
            interval: mean.and_then(|(_, interval)| interval).map(|ends| unit.possible(ends)),
            spread: together.and_then(|t| t.spread),
            ratio: None,
            ratio_interval: None,
            significant: None,
        };
        if at == 0 {
            return side;
        }
        match compare_at(first, values, confidence) {
            Ok(compared) => {
                side.ratio = Some(compared.ratio.mean);
                side.ratio_interval = Some([compared.ratio.low, compared.ratio.high]);
                let enough = first.len().min(values.len()) >= RUNS_MIN;
                side.significant = enough.then_some(compared.significant);
            }
            // Single runs yield a ratio, but no scatter that shows whether the ratio is
            // significant.
            Err(_) => side.ratio = single_ratio(first, values),
        }
        side
    };
    let sides: Vec<SideFigure> = values.iter().enumerate().map(side).collect();
    let says = says(&sides);
    Metric { key, name, higher_is_better, estimate, sides, says }
}

/// Returns the geometric mean with its interval, or the arithmetic mean if a value is not above 0.
fn mean(values: &[f64]) -> Option<(f64, Option<[f64; 2]>)> {
    let is_positive = values.iter().all(|value| *value > 0.0);
    // The logarithm of a single value or of equal values would only add a rounding error.
    let differ = values.windows(2).any(|pair| pair[0] != pair[1]);
    let is_geometric = is_positive && differ;
    let scale = |value: f64| if is_geometric { libm::log(value) } else { value };
    let unscale = |value: f64| if is_geometric { libm::exp(value) } else { value };
    let scaled: Vec<f64> = values.iter().map(|value| scale(*value)).collect();
    let together = repeats(&scaled).ok()?;
    let interval = together.interval.map(|i| [i.low, i.high].map(unscale));
    Some((unscale(together.mean), interval))
}

fn single_ratio(first: &[f64], values: &[f64]) -> Option<f64> {
    let (a, b) = (mean(first)?.0, mean(values)?.0);
    (a > 0.0).then(|| b / a)
}

fn says(sides: &[SideFigure]) -> String {
    let others = &sides[1..];
    if others.iter().all(|side| side.ratio.is_none()) {
        return "not compared".to_owned();
    }
    if others.iter().any(|side| side.significant == Some(true)) {
        return "significant".to_owned();
    }
    if others.iter().any(|side| side.significant.is_none()) {
        return format!("too few runs: at least {RUNS_MIN} per side");
    }
    "no significant difference".to_owned()
}

fn remarks(
    sides: &[Side<'_>],
    metrics: &[Metric],
    differences: &[ConditionDifference],
    accepted: &[String],
) -> Vec<String> {
    let mut remarks = Vec::new();
    for side in sides {
        for (bundle, _) in side.runs.iter().filter(|(b, _)| b.run.end.kind != EndKind::Completed) {
            let run = &bundle.run;
            let why = match run.end.says.as_str() {
                "" => String::new(),
                says => format!(": {says}"),
            };
            remarks.push(format!(
                "{}: run {} is excluded: it did not complete{why}",
                side.name, run.run_id
            ));
        }
    }
    remarks.extend(sides.iter().filter_map(single_run::describe_rate));
    remarks.extend(sides.iter().filter_map(describe_missing_recovery));
    remarks.extend(sides.iter().flat_map(invalid));
    remarks.extend(sides.iter().flat_map(|side| not_shown(side, accepted)));
    let is_problem = |f: &Finding| f.outcome != FindingOutcome::Pass;
    let mut of_sides: Vec<(String, Vec<&str>)> = Vec::new();
    for side in sides {
        let bundles: Vec<&Bundle> = side.runs.iter().map(|(bundle, _)| *bundle).collect();
        for f in rules::experiment::findings(&bundles).into_iter().filter(is_problem) {
            let says = format!("{} ({}).", f.says, f.rule);
            match of_sides.iter_mut().find(|(known, _)| *known == says) {
                Some((_, names)) => names.push(&side.name),
                None => of_sides.push((says, vec![&side.name])),
            }
        }
    }
    // A remark that applies to several sides is listed only once.
    remarks
        .extend(of_sides.into_iter().map(|(says, names)| format!("{}: {says}", names.join(", "))));
    // If the sides' working sets differ in size, the runs of both sides of the comparison together
    // may reveal a cache that the runs of one side do not show.
    let all: Vec<&Bundle> = sides.iter().flat_map(|s| &s.runs).map(|(bundle, _)| *bundle).collect();
    let together = (rules::experiment::working_set_grows::RULE.check)(&all).filter(is_problem);
    remarks.extend(together.map(|f| format!("All sides together: {} ({}).", f.says, f.rule)));
    if metrics.iter().any(|metric| metric.estimate) {
        remarks.push(
            "Figures adjusted for CPU are estimates for the first side's CPU. They assume that the \
             speed of one core alone limits the run. Each run measures its single-core score for \
             two seconds at its start."
                .to_owned(),
        );
    }
    if best_practice(sides) {
        remarks.push(
            "Both plans declare best practice: each side was tuned for its own system, so \
             differences in settings are permitted."
                .to_owned(),
        );
    }
    remarks.extend(unmatched_acceptances(differences, accepted));
    remarks
}

/// Reports how many runs of a side of the comparison ended before the load recovered.
fn describe_missing_recovery(side: &Side<'_>) -> Option<String> {
    let waited_ns = |(bundle, _): &(&Bundle, &Verdict)| match Windows::of(bundle)?.recovery_ns {
        Err(NoRecovery::NotWithinRun(ns)) => Some(ns),
        _ => None,
    };
    let waited_ns: Vec<u64> = side.completed().filter_map(waited_ns).collect();
    let least_s = *waited_ns.iter().min()? as f64 / NS_PER_S;
    Some(format!(
        "{}: {} of {} had not recovered at the end of the run, at least {least_s:.0} s after the \
         event. This time is used as the recovery time and is a lower bound.",
        side.name,
        waited_ns.len(),
        many(side.completed().count(), "run"),
    ))
}

/// Returns the reasons why runs of a side of the comparison are INVALID, each reason once.
fn invalid(side: &Side<'_>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (bundle, verdict) in &side.runs {
        if verdict.verdict != VerdictKind::Invalid {
            continue;
        }
        let id = bundle.run.run_id.as_str();
        match reasons.iter_mut().find(|(reason, _)| *reason == verdict.reason) {
            Some((_, runs)) => runs.push(id),
            None => reasons.push((&verdict.reason, vec![id])),
        }
    }
    let says = |(reason, runs): (&str, Vec<&str>)| match &runs[..] {
        [run] => format!("{}: run {run} is INVALID: {reason}.", side.name),
        runs => format!("{}: {} runs are INVALID: {reason}.", side.name, runs.len()),
    };
    reasons.into_iter().map(says).collect()
}

/// Returns a remark for each requested factor that is equal on all sides.
fn equal_factors(differences: &[ConditionDifference], factors: &[String]) -> Vec<String> {
    let alike = |word: &&String| !differences.iter().any(|one| conditions::covers(word, &one.name));
    let says =
        |word: &String| format!("{word} is the compared factor, but is the same on all sides.");
    factors.iter().filter(alike).map(says).collect()
}

/// Returns a remark for each rule that affects comparisons and is unknown in a side's runs.
fn not_shown(side: &Side<'_>, accepted: &[String]) -> Vec<String> {
    let of_run = |(bundle, verdict): &(&Bundle, &Verdict)| -> Vec<(String, String)> {
        let unknown = doubt::unknown(bundle, verdict, accepted);
        unknown.map(|finding| (finding.rule.clone(), finding.says.clone())).collect()
    };
    let runs: Vec<Vec<(String, String)>> = side.completed().map(of_run).collect();
    let mut remarks_by_rule: Vec<(&String, &String)> = Vec::new();
    for (rule, says) in runs.iter().flatten() {
        if !remarks_by_rule.iter().any(|(earlier, _)| *earlier == rule) {
            remarks_by_rule.push((rule, says));
        }
    }
    let line = |(rule, says): (&String, &String)| {
        let count = runs.iter().filter(|run| run.iter().any(|(of, _)| of == rule)).count();
        let (name, all) = (&side.name, runs.len());
        format!("{name}: unknown in {count} of {all} runs: {says} ({rule}).")
    };
    remarks_by_rule.into_iter().map(line).collect()
}

/// Returns a remark for each accepted name that matches neither a differing condition nor a rule.
fn unmatched_acceptances(differences: &[ConditionDifference], accepted: &[String]) -> Vec<String> {
    let stray = |word: &&String| {
        let known = |one: &ConditionDifference| {
            one.name == **word || one.name.starts_with(&format!("{word}."))
        };
        let is_rule = rules::find(word).is_some() || *word == conditions::INVALID_RUNS;
        !differences.iter().any(known) && !is_rule
    };
    let says = |word: &String| format!("--accept {word} had no effect.");
    accepted.iter().filter(stray).map(says).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arithmetic mean of the second side is larger, and its geometric mean is smaller.
    #[test]
    fn the_ratio_is_that_of_the_means() {
        let values = [vec![34_000.0, 35_000.0, 35_300.0], vec![12_000.0, 36_000.0, 62_000.0]];
        let called = ("rate".to_owned(), "rate".to_owned());
        let metric = metric_as(called, true, FigureUnit::PerSecond, &values, false);
        let [a, b] = &metric.sides[..] else { panic!("two sides") };
        let (Some(first), Some(second), Some(ratio)) = (a.mean, b.mean, b.ratio) else {
            panic!("{metric:?}")
        };
        assert!(ratio < 0.9 && (second / first - ratio).abs() < 1e-9, "{first} {second} {ratio}");
        assert!(b.interval.is_some_and(|[low, high]| low < second && second < high), "{b:?}");
        // Without a ratio, the mean is arithmetic.
        assert_eq!(mean(&[0.0, 2.0]).map(|(mean, _)| mean), Some(1.0));
    }
}
