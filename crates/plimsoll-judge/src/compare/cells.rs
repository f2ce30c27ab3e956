//! Two sweeps, cell by cell: at each size, read share, pattern and depth the second over the
//! first.
//!
//! The unit of replication is the sweep, as it is the run in [`crate::stats::welch`]: what changes
//! from one sweep to the next (placement, neighbours, wear) does not show within a point. So a
//! cell is
//! called different only with four sweeps a side or more, at a confidence that all cells share
//! (Bonferroni), and a single sweep a side has ratios whose interval is that of the scatter
//! within the
//! two points: on a logarithmic scale the half widths of two independent intervals add as the
//! sides of
//! a right triangle.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use serde::{Deserialize, Serialize};

use super::{CONFIDENCE, Outcome, Side, Unlike, conditions, doubt};
use crate::stats::Moments;
use crate::stats::welch::{RUNS_MIN, compare_at};
use crate::sweep::SweepPoint;
use crate::verdict::{Verdict, VerdictKind};

/// Where the interval of a ratio comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalOf {
    /// From how the sweeps of each side scatter.
    Sweeps,
    /// From how the rate moved within one point of each side.
    WithinPoint,
}

/// What is said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apart {
    /// The second side's rate is higher by more than the sweeps scatter.
    Higher,
    /// It is lower by more than that.
    Lower,
    /// It is neither.
    NotToldApart,
    /// Too few sweeps to tell.
    TooFewSweeps,
    /// It differs by more than the sweeps scatter, and a rule that has to be known for that is
    /// not.
    NotShown,
    /// One side has no figure that can be believed.
    NotCompared,
}

/// A figure of a cell on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellFigure {
    /// Mean of the first side.
    pub first: Option<f64>,
    /// Mean of the second side.
    pub second: Option<f64>,
    /// The second over the first.
    pub ratio: Option<f64>,
}

/// A point of both sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCell {
    /// Such as `random 4KiB r75 q4`.
    pub label: String,
    /// `random`, `sequential`, `zipf`…
    pub pattern: String,
    /// Outstanding operations per client.
    pub queue_depth: u32,
    /// Size of a transfer; 0 where sizes are mixed.
    pub size_bytes: u64,
    /// Read share of the data operations, in percent.
    pub read_percent: f64,
    /// Operations per second.
    pub rate_per_s: CellFigure,
    /// 95 % interval of the ratio of the rates.
    pub rate_ratio_interval: Option<[f64; 2]>,
    /// Where it comes from.
    pub interval_of: Option<IntervalOf>,
    /// Mean latency.
    pub latency_ns_avg: CellFigure,
    /// 99th percentile of latency; of several sweeps the mean of theirs.
    pub latency_ns_p99: CellFigure,
    /// What is said of the rates.
    pub apart: Apart,
    /// Why it is not compared; empty where it is.
    pub note: String,
}

/// All cells in one figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// Cells that it is of.
    pub cells: usize,
    /// Geometric mean of their ratios.
    pub ratio_mean: Option<f64>,
    /// Least ratio.
    pub ratio_min: Option<f64>,
    /// Largest.
    pub ratio_max: Option<f64>,
}

/// Two sweeps side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepComparison {
    /// The sides; the first is what the second is held against.
    pub names: [String; 2],
    /// Sweeps on each side: the least number that a cell has.
    pub sweeps: [usize; 2],
    /// What follows.
    pub outcome: Outcome,
    /// Which side, where one is named.
    pub winner: Option<String>,
    /// The sentence that is read first.
    pub reason: String,
    /// The rates of all cells together.
    pub rate: Overall,
    /// Their mean latencies.
    pub latency_avg: Overall,
    /// Their 99th percentiles.
    pub latency_p99: Overall,
    /// The cells that both sides have, in the first side's order.
    pub cells: Vec<SweepCell>,
    /// Conditions that differ in any cell.
    pub unlike: Vec<Unlike>,
    /// Sentences: what was left out, what the intervals hold.
    pub remarks: Vec<String>,
}

/// What one side measured at one point.
struct Measured<'a> {
    points: Vec<SweepPoint>,
    runs: Vec<(&'a Bundle, &'a Verdict)>,
}

/// Compares two sides, each the points of one sweep or of several of the same plan.
pub fn compare_sweeps(sides: &[Side<'_>; 2], accepted: &[String]) -> SweepComparison {
    let (first, second) = (by_label(&sides[0]), by_label(&sides[1]));
    let order = labels(&sides[0]);
    let common: Vec<&String> = order.iter().filter(|label| second.contains_key(*label)).collect();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / common.len().max(1) as f64;
    let mut cells = Vec::new();
    let mut unlike = UnlikeInCells::default();
    let mut sweeps = [usize::MAX; 2];
    for label in &common {
        let (Some(a), Some(b)) = (first.get(*label), second.get(*label)) else { continue };
        sweeps = [sweeps[0].min(a.points.len()), sweeps[1].min(b.points.len())];
        let cell = cell(a, b, confidence, accepted);
        if cell.apart != Apart::NotCompared {
            unlike.note(sides, a, b, accepted);
        }
        cells.push(cell);
    }
    if cells.is_empty() {
        sweeps = [0; 2];
    }
    let names = [sides[0].name.clone(), sides[1].name.clone()];
    let unlike = unlike.told();
    let rate = overall(&cells, |cell| cell.rate_per_s);
    let (outcome, winner, reason) = decide(&names, &cells, &rate, sweeps, &unlike);
    SweepComparison {
        remarks: remarks(sides, [&first, &second], &cells, sweeps, &unlike, accepted),
        names,
        sweeps,
        outcome,
        winner,
        reason,
        rate,
        latency_avg: overall(&cells, |cell| cell.latency_ns_avg),
        latency_p99: overall(&cells, |cell| cell.latency_ns_p99),
        cells,
        unlike,
    }
}

/// The completed points of a side by their labels.
fn by_label<'a>(side: &Side<'a>) -> BTreeMap<String, Measured<'a>> {
    let mut all: BTreeMap<String, Measured<'a>> = BTreeMap::new();
    let completed = |run: &&(&Bundle, &Verdict)| run.0.run.end.kind == EndKind::Completed;
    for &(bundle, verdict) in side.runs.iter().filter(completed) {
        let Some(point) = SweepPoint::of(bundle, verdict) else { continue };
        let entry = all.entry(point.label.clone());
        let at = entry.or_insert_with(|| Measured { points: Vec::new(), runs: Vec::new() });
        at.points.push(point);
        at.runs.push((bundle, verdict));
    }
    all
}

/// Labels in the order in which they were first measured.
fn labels(side: &Side<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (bundle, _) in side.completed() {
        let label = bundle.run.experiment.as_ref().map(|place| place.arm.clone());
        if let Some(label) = label.filter(|label| !all.contains(label)) {
            all.push(label);
        }
    }
    all
}

fn cell(a: &Measured<'_>, b: &Measured<'_>, confidence: f64, accepted: &[String]) -> SweepCell {
    let shown = &a.points[0];
    let invalid =
        |side: &Measured<'_>| side.points.iter().any(|point| point.verdict == VerdictKind::Invalid);
    let figure = |of: fn(&SweepPoint) -> Option<f64>| {
        let (first, second) = (mean(a, of), mean(b, of));
        let ratio = first.zip(second).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
        CellFigure { first, second, ratio }
    };
    let mut cell = SweepCell {
        label: shown.label.clone(),
        pattern: shown.pattern.clone(),
        queue_depth: shown.queue_depth,
        size_bytes: shown.size_bytes,
        read_percent: shown.read_percent,
        rate_per_s: figure(|point| point.rate_per_s),
        rate_ratio_interval: None,
        interval_of: None,
        latency_ns_avg: figure(|point| point.latency_ns_avg.map(|ns| ns as f64)),
        latency_ns_p99: figure(|point| point.latency_ns_p99.map(|ns| ns as f64)),
        apart: Apart::TooFewSweeps,
        note: String::new(),
    };
    // A run that claims nothing is MEASURED, whatever it was that answered.
    let refuted = |side: &Measured<'_>| {
        let mut runs = side.runs.iter();
        runs.find_map(|(_, verdict)| Some(doubt::refuted(verdict, accepted)?.rule.clone()))
    };
    let refused = match (invalid(a), invalid(b), cell.rate_per_s.ratio) {
        (true, true, _) => "INVALID on both sides".to_owned(),
        (true, false, _) => "INVALID on the first side".to_owned(),
        (false, true, _) => "INVALID on the second side".to_owned(),
        (false, false, None) => "not measured on both sides".to_owned(),
        (false, false, Some(_)) => match (refuted(a), refuted(b)) {
            (Some(rule), _) => format!("{rule} failed on the first side"),
            (None, Some(rule)) => format!("{rule} failed on the second side"),
            (None, None) => String::new(),
        },
    };
    if !refused.is_empty() {
        cell.note = refused;
        cell.apart = Apart::NotCompared;
        for figure in [&mut cell.rate_per_s, &mut cell.latency_ns_avg, &mut cell.latency_ns_p99] {
            figure.ratio = None;
        }
        return cell;
    }
    told_apart(&mut cell, a, b, confidence);
    let unknown = |side: &Measured<'_>| {
        let mut runs = side.runs.iter();
        runs.find_map(|(bundle, verdict)| doubt::unknown(bundle, verdict, accepted).next())
            .map(|finding| finding.rule.clone())
    };
    if matches!(cell.apart, Apart::Higher | Apart::Lower) {
        let which = match (unknown(a), unknown(b)) {
            (Some(rule), _) => Some((rule, "first")),
            (None, Some(rule)) => Some((rule, "second")),
            (None, None) => None,
        };
        if let Some((rule, side)) = which {
            cell.apart = Apart::NotShown;
            cell.note = format!("{rule} is unknown on the {side} side");
        }
    }
    cell
}

/// Interval of a cell's ratio, and whether it is more than noise.
fn told_apart(cell: &mut SweepCell, a: &Measured<'_>, b: &Measured<'_>, confidence: f64) {
    let rates = |side: &Measured<'_>| -> Vec<f64> {
        side.points.iter().filter_map(|point| point.rate_per_s).collect()
    };
    let (first, second) = (rates(a), rates(b));
    if first.len().min(second.len()) >= 2 {
        if let Ok(compared) = compare_at(&first, &second, CONFIDENCE) {
            cell.rate_ratio_interval = Some([compared.ratio.low, compared.ratio.high]);
            cell.interval_of = Some(IntervalOf::Sweeps);
            cell.rate_per_s.ratio = Some(compared.ratio.mean);
        }
        let enough = first.len().min(second.len()) >= RUNS_MIN;
        if let Ok(compared) = compare_at(&first, &second, confidence)
            && enough
        {
            cell.apart = match (compared.significant, compared.ratio.mean > 1.0) {
                (true, true) => Apart::Higher,
                (true, false) => Apart::Lower,
                (false, _) => Apart::NotToldApart,
            };
        }
        return;
    }
    let within = |side: &Measured<'_>| match &side.points[..] {
        [one] => half_width_log(one.rate_interval_per_s?),
        _ => None,
    };
    if let (Some(a), Some(b), Some(ratio)) = (within(a), within(b), cell.rate_per_s.ratio) {
        let half = libm::hypot(a, b);
        cell.rate_ratio_interval = Some([ratio * libm::exp(-half), ratio * libm::exp(half)]);
        cell.interval_of = Some(IntervalOf::WithinPoint);
    }
}

/// Half of an interval's width on a logarithmic scale; `None` where it reaches down to nothing.
fn half_width_log([low, high]: [f64; 2]) -> Option<f64> {
    (low > 0.0 && high >= low).then(|| 0.5 * libm::log(high / low))
}

fn mean(side: &Measured<'_>, of: fn(&SweepPoint) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = side.points.iter().map(of).collect();
    Moments::of(&values?).mean()
}

fn overall(cells: &[SweepCell], of: fn(&SweepCell) -> CellFigure) -> Overall {
    let ratios: Vec<f64> = cells.iter().filter_map(|cell| of(cell).ratio).collect();
    let logs: Vec<f64> = ratios.iter().map(|ratio| libm::log(*ratio)).collect();
    Overall {
        cells: ratios.len(),
        ratio_mean: Moments::of(&logs).mean().map(libm::exp),
        ratio_min: ratios.iter().copied().reduce(f64::min),
        ratio_max: ratios.iter().copied().reduce(f64::max),
    }
}

fn decide(
    names: &[String; 2],
    cells: &[SweepCell],
    rate: &Overall,
    sweeps: [usize; 2],
    unlike: &[Unlike],
) -> (Outcome, Option<String>, String) {
    let [a, b] = names;
    let (Some(mean), Some(least), Some(most)) = (rate.ratio_mean, rate.ratio_min, rate.ratio_max)
    else {
        let says = match cells.len() {
            0 => "The two sweeps have no common point.".to_owned(),
            n => format!("None of the {n} common points has a figure on both sides."),
        };
        return (Outcome::TooFewRuns, None, says);
    };
    let told = format!(
        "Operations per second, {b} over {a}: {mean:.3} as the geometric mean of {} cells, from \
         {least:.3} to {most:.3}.",
        rate.cells
    );
    let open: Vec<&str> =
        unlike.iter().filter(|one| !one.accepted).map(|one| one.name.as_str()).collect();
    if !open.is_empty() {
        let says = format!(
            "{told} No winner: {} conditions differ ({}). Make them equal, or accept each with \
             --accept.",
            open.len(),
            super::decide::shortened(&open)
        );
        return (Outcome::UnlikeConditions, None, says);
    }
    let of = |apart| cells.iter().filter(|cell| cell.apart == apart).count();
    let (higher, lower, same) = (of(Apart::Higher), of(Apart::Lower), of(Apart::NotToldApart));
    let first_open = cells.iter().find(|cell| cell.apart == Apart::NotShown);
    if let Some(cell) = first_open {
        let says = format!(
            "{told} No winner: {} cells differ significantly, but a required rule is unknown \
             ({}, in {}). Fix it, or accept the rule with --accept.",
            of(Apart::NotShown),
            cell.note,
            cell.label
        );
        return (Outcome::NotShown, None, says);
    }
    if higher + lower + same == 0 {
        let each = if sweeps[0] == sweeps[1] {
            format!("{}", sweeps[0])
        } else {
            format!("{} and {}", sweeps[0], sweeps[1])
        };
        let says = format!(
            "{told} {each} sweeps per side cannot show a difference: at least {RUNS_MIN} are \
             needed."
        );
        return (Outcome::TooFewRuns, None, says);
    }
    let counted = format!(
        "higher in {higher} cells, lower in {lower}, no significant \
        difference in {same}"
    );
    let says = format!("{told} {b} is {counted}.");
    match (higher, lower) {
        (0, 0) => (Outcome::NotToldApart, None, says),
        (_, 0) => (Outcome::Differ, Some(b.clone()), says),
        (0, _) => (Outcome::Differ, Some(a.clone()), says),
        _ => (Outcome::Differ, None, says),
    }
}

/// Conditions that differ, gathered over the cells.
#[derive(Default)]
struct UnlikeInCells {
    all: BTreeMap<String, ([BTreeSet<String>; 2], bool)>,
}

impl UnlikeInCells {
    fn note<'a>(
        &mut self,
        sides: &[Side<'_>; 2],
        a: &Measured<'a>,
        b: &Measured<'a>,
        taken: &[String],
    ) {
        let of = |side: &Side<'_>, at: &Measured<'a>| Side {
            name: side.name.clone(),
            runs: at.runs.clone(),
        };
        let pair = [of(&sides[0], a), of(&sides[1], b)];
        for one in conditions::unlike(&pair, taken, &[]) {
            let entry = self.all.entry(one.name).or_default();
            entry.1 = one.accepted;
            for (set, value) in entry.0.iter_mut().zip(one.values) {
                set.insert(value);
            }
        }
    }

    fn told(self) -> Vec<Unlike> {
        let joined = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" and ");
        let one = |(name, (values, accepted)): (String, ([BTreeSet<String>; 2], bool))| Unlike {
            name,
            values: values.into_iter().map(joined).collect(),
            accepted,
            factor: false,
        };
        self.all.into_iter().map(one).collect()
    }
}

fn remarks(
    sides: &[Side<'_>; 2],
    found: [&BTreeMap<String, Measured<'_>>; 2],
    cells: &[SweepCell],
    sweeps: [usize; 2],
    unlike: &[Unlike],
    accepted: &[String],
) -> Vec<String> {
    let mut remarks = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        let alone: Vec<&str> = found[at]
            .keys()
            .filter(|label| !found[1 - at].contains_key(*label))
            .map(String::as_str)
            .collect();
        if !alone.is_empty() {
            let (count, few) = (alone.len(), super::decide::shortened(&alone));
            remarks.push(format!("{count} points are of {} alone: {few}.", side.name));
        }
        let ended = side.runs.len() - side.completed().count();
        if ended > 0 {
            remarks.push(format!("{ended} points of {} did not complete.", side.name));
        }
    }
    let refused = cells.iter().filter(|cell| cell.apart == Apart::NotCompared).count();
    if refused > 0 {
        remarks.push(format!("{refused} cells are not compared; each says why."));
    }
    if cells.iter().any(|cell| cell.interval_of == Some(IntervalOf::WithinPoint)) {
        remarks.push(
            "The intervals are those of the scatter within each point. What changes from one \
             sweep to \
             the next is not in them: sweep several times a side to see it."
                .to_owned(),
        );
    }
    if sweeps.iter().all(|count| *count >= RUNS_MIN) {
        remarks.push(format!(
            "{} cells share the risk of a false difference, 5 % for all of them together.",
            cells.len()
        ));
    }
    remarks.extend(super::strays(unlike, accepted));
    remarks
}
