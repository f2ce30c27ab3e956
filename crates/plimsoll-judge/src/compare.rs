//! Two or more experiments side by side.
//!
//! The requirement comes first: where both sides meet it with headroom, the difference between them
//! should not decide. Then the conditions: across unlike ones no winner is called unless each
//! difference was accepted, nor where a rule that bears on comparisons failed or is unknown in one of the
//! runs, unless it was accepted by its name. Then the ratio of the runs' means with its interval (Welch's t on their
//! logarithms, [`crate::stats::welch`]), and whether it is more than the runs scatter. With fewer
//! than four runs a side nothing is called significant.

mod cells;
mod conditions;
mod decide;
mod doubt;
mod fleets;
mod why;
mod within;

pub use cells::{
    Apart, CellFigure, IntervalOf, Overall, SweepCell, SweepComparison, compare_sweeps,
};
pub use conditions::{Unlike, best_practice, unlike};
pub use decide::{Outcome, Standing};
pub use fleets::{FleetRun, FleetSide, compare_fleets};
pub use why::{Cause, Parting, Why};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Outcome as FindingOutcome};
use crate::metrics::{self, ByCpu, Counted, Figure};
use crate::rules;
use crate::stats::welch::{RUNS_MIN, compare_at};
use crate::stats::{Moments, repeats};
use crate::sweep::PointPlace;
use crate::verdict::{Verdict, VerdictKind};

/// Confidence of the intervals; with several sides it is shared among them.
const CONFIDENCE: f64 = 0.95;

/// One side: an experiment's runs with their verdicts.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// How it is called.
    pub name: String,
    /// Its runs.
    pub runs: Vec<(&'a Bundle, &'a Verdict)>,
}

impl Side<'_> {
    /// Runs that came to their end: the others are listed, and compared with nothing.
    fn completed(&self) -> impl Iterator<Item = &(&Bundle, &Verdict)> {
        self.runs.iter().filter(|(bundle, _)| bundle.run.end.kind == EndKind::Completed)
    }
}

/// A figure on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideFigure {
    /// One value per completed run.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// 95 % interval of the mean by Student's t.
    pub interval: Option<[f64; 2]>,
    /// Maximum less minimum, over the mean.
    pub spread: Option<f64>,
    /// Over the first side.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    pub ratio_interval: Option<[f64; 2]>,
    /// Whether the ratio differs from 1 by more than the runs scatter; `None`: too few runs to say.
    pub significant: Option<bool>,
}

/// A figure on all sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in JSON.
    pub key: String,
    /// Its name for people.
    pub name: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// True for a figure adjusted for the speed of each side's CPU: an estimate.
    pub estimate: bool,
    /// The sides.
    pub sides: Vec<SideFigure>,
    /// What is said of the difference.
    pub says: String,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The sides; the first is what the others are held against.
    pub names: Vec<String>,
    /// What follows.
    pub outcome: Outcome,
    /// Which side, where one is named.
    pub winner: Option<String>,
    /// The sentence that is read first.
    pub reason: String,
    /// How each side stands against its requirement.
    pub standings: Vec<Standing>,
    /// The figures.
    pub metrics: Vec<Metric>,
    /// Conditions that differ.
    pub unlike: Vec<Unlike>,
    /// Where two sides part, and what their difference is made of; `None`: there are more of them, or less than
    /// one run of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Sentences: what was left out, what is an estimate.
    pub remarks: Vec<String>,
    /// Each run of each side with its plan, where and when it was measured; empty: written by a version that did not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// A run that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its side.
    pub side: String,
    /// The run.
    pub run_id: String,
    /// Name of its plan.
    pub plan: String,
    /// Where and when.
    pub place: PointPlace,
}

impl Measured {
    fn all(sides: &[Side<'_>]) -> Vec<Self> {
        let of = |side: &Side<'_>| -> Vec<Self> {
            let one = |(bundle, _): &(&Bundle, &Verdict)| Self {
                side: side.name.clone(),
                run_id: bundle.run.run_id.clone(),
                plan: bundle.run.name.clone(),
                place: PointPlace::of(bundle),
            };
            side.runs.iter().map(one).collect()
        };
        sides.iter().flat_map(of).collect()
    }
}

/// Compares two or more sides.
pub fn compare(sides: &[Side<'_>], accepted: &[String]) -> Comparison {
    compare_for(sides, accepted, &[])
}

/// Compares two or more sides that differ on purpose: `factors`, and those that the plans of all sides name, are what
/// is asked about, so that only other differences are unlike conditions.
pub fn compare_for(sides: &[Side<'_>], accepted: &[String], factors: &[String]) -> Comparison {
    let named = accepted;
    let mut factors = [factors, &conditions::factors_of_plans(sides)].concat();
    factors.sort();
    factors.dedup();
    let factors = &factors[..];
    let accepted = &[accepted, factors].concat()[..];
    let unlike = unlike(sides, accepted, factors);
    let metrics = metrics_of(sides);
    let standings: Vec<Standing> = sides.iter().map(decide::standing).collect();
    let decided = decide::decide(sides, &standings, &metrics, &unlike, accepted);
    let mut remarks = remarks(sides, &metrics, &unlike, named);
    remarks.extend(alike_factors(&unlike, factors));
    Comparison {
        names: sides.iter().map(|side| side.name.clone()).collect(),
        why: why::why(sides, &unlike),
        outcome: decided.outcome,
        winner: decided.winner,
        reason: decided.reason,
        standings,
        remarks,
        metrics,
        unlike,
        measured: Measured::all(sides),
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

/// Mean single-core score of a side's hosts, measured at the start of each run; `None` where one has
/// none.
fn score(side: &Side<'_>) -> Option<f64> {
    let scores: Option<Vec<f64>> =
        side.runs.iter().map(|(bundle, _)| bundle.environment.cpu_score).collect();
    Moments::of(&scores?).mean().filter(|score| *score > 0.0)
}

/// The values as they would be on the first side's CPU, if the CPU alone held them back.
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
    metric_as(called, figure.higher_is_better, figure.counted, values, estimate)
}

fn metric_as(
    (key, name): (String, String),
    higher_is_better: bool,
    counted: Counted,
    values: &[Vec<f64>],
    estimate: bool,
) -> Metric {
    let others = (values.len() - 1).max(1) as f64;
    // Bonferroni: several sides held against the first share the risk of a false difference.
    let confidence = 1.0 - (1.0 - CONFIDENCE) / others;
    let first = values.first().map_or(&[][..], Vec::as_slice);
    let side = |(at, values): (usize, &Vec<f64>)| {
        let together = repeats(values).ok();
        let mut side = SideFigure {
            values: values.clone(),
            mean: together.as_ref().map(|t| t.mean),
            interval: together
                .as_ref()
                .and_then(|t| t.interval)
                .map(|i| counted.possible([i.low, i.high])),
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
            // A single run has a ratio and nothing to judge it by.
            Err(_) => side.ratio = single_ratio(first, values),
        }
        side
    };
    let sides: Vec<SideFigure> = values.iter().enumerate().map(side).collect();
    let says = says(&sides);
    Metric { key, name, higher_is_better, estimate, sides, says }
}

fn single_ratio(first: &[f64], values: &[f64]) -> Option<f64> {
    let (a, b) = (Moments::of(first).mean()?, Moments::of(values).mean()?);
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
    unlike: &[Unlike],
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
                "{}: run {} is left out, it did not complete{why}",
                side.name, run.run_id
            ));
        }
    }
    remarks.extend(sides.iter().filter_map(within::of_one_run));
    remarks.extend(sides.iter().flat_map(invalid));
    remarks.extend(sides.iter().flat_map(|side| not_shown(side, accepted)));
    let told = |f: &Finding| f.outcome != FindingOutcome::Pass;
    let mut of_sides: Vec<(String, Vec<&str>)> = Vec::new();
    for side in sides {
        let bundles: Vec<&Bundle> = side.runs.iter().map(|(bundle, _)| *bundle).collect();
        for f in rules::experiment::findings(&bundles).into_iter().filter(told) {
            let says = format!("{} ({}).", f.says, f.rule);
            match of_sides.iter_mut().find(|(known, _)| *known == says) {
                Some((_, names)) => names.push(&side.name),
                None => of_sides.push((says, vec![&side.name])),
            }
        }
    }
    // What is true of several sides is said once.
    remarks
        .extend(of_sides.into_iter().map(|(says, names)| format!("{}: {says}", names.join(", "))));
    // Sides on working sets of different sizes show a cache that neither shows alone.
    let all: Vec<&Bundle> = sides.iter().flat_map(|s| &s.runs).map(|(bundle, _)| *bundle).collect();
    let together = (rules::experiment::working_set_grows::RULE.check)(&all).filter(told);
    remarks.extend(together.map(|f| format!("All sides together: {} ({}).", f.says, f.rule)));
    if metrics.iter().any(|metric| metric.estimate) {
        remarks.push(
            "Figures adjusted for CPU are estimates: what they would be on the first side's CPU if \
             one core's speed alone held them back. Scores of a single core were measured for two \
             seconds at the start of each run."
                .to_owned(),
        );
    }
    if best_practice(sides) {
        remarks.push(
            "Both plans say that they follow best practice: each side has its own settings, and this \
             is best practice against best practice."
                .to_owned(),
        );
    }
    remarks.extend(strays(unlike, accepted));
    remarks
}

/// Why runs of a side are INVALID, each reason once.
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

/// What was asked about and differs nowhere.
fn alike_factors(unlike: &[Unlike], factors: &[String]) -> Vec<String> {
    let alike = |word: &&String| !unlike.iter().any(|one| conditions::covers(word, &one.name));
    let says = |word: &String| format!("{word} is asked about, and is the same on all sides.");
    factors.iter().filter(alike).map(says).collect()
}

/// What a side's runs leave open that bears on comparisons: each rule once.
fn not_shown(side: &Side<'_>, accepted: &[String]) -> Vec<String> {
    let of_run = |(bundle, verdict): &(&Bundle, &Verdict)| -> Vec<(String, String)> {
        let unknown = doubt::unknown(bundle, verdict, accepted);
        unknown.map(|finding| (finding.rule.clone(), finding.says.clone())).collect()
    };
    let runs: Vec<Vec<(String, String)>> = side.completed().map(of_run).collect();
    let mut told: Vec<(&String, &String)> = Vec::new();
    for (rule, says) in runs.iter().flatten() {
        if !told.iter().any(|(earlier, _)| *earlier == rule) {
            told.push((rule, says));
        }
    }
    let line = |(rule, says): (&String, &String)| {
        let count = runs.iter().filter(|run| run.iter().any(|(of, _)| of == rule)).count();
        let (name, all) = (&side.name, runs.len());
        format!("{name}: not shown in {count} of {all} runs: {says} ({rule}).")
    };
    told.into_iter().map(line).collect()
}

/// Words that were accepted and are no condition that differs.
fn strays(unlike: &[Unlike], accepted: &[String]) -> Vec<String> {
    let stray = |word: &&String| {
        let known = |one: &Unlike| one.name == **word || one.name.starts_with(&format!("{word}."));
        let is_rule = rules::find(word).is_some() || *word == conditions::INVALID_RUNS;
        !unlike.iter().any(known) && !is_rule
    };
    let says = |word: &String| format!("--accept {word} had nothing to accept.");
    accepted.iter().filter(stray).map(says).collect()
}
