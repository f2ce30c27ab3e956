//! Comparison of two sweeps, cell by cell. A cell is a combination of size, read share, pattern and
//! depth. Its ratio is the figure of the second sweep divided by that of the first.
//!
//! The unit of replication is the sweep, like the run in [`crate::stats::welch`]. From one sweep to
//! the next, the placement of the data, other users of the storage and the wear of the drives
//! change. A single point does not show these changes. A cell can therefore only count as different
//! with at least four sweeps per side. All cells share the error probability (Bonferroni
//! correction). With a single sweep per side, the interval of a ratio reflects only the scatter
//! within the two points. The half widths of the two independent intervals add in quadrature on a
//! logarithmic scale.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use serde::{Deserialize, Serialize};

use super::{CONFIDENCE, ConditionDifference, Outcome, Side, conditions, doubt};
use crate::stats::Moments;
use crate::stats::welch::{RUNS_MIN, compare_at};
use crate::sweep::{IoShape, SweepPoint};
use crate::verdict::{Verdict, VerdictKind};

/// Kind of scatter from which the interval of a ratio was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalOf {
    /// Scatter between the sweeps of each side of the comparison.
    Sweeps,
    /// Variation of the rate within the single point that each side of the comparison has.
    WithinPoint,
}

/// Conclusion about one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellOutcome {
    /// The second side's rate is higher by more than the sweeps' scatter.
    Higher,
    /// The second side's rate is lower by more than the sweeps' scatter.
    Lower,
    /// The difference of the rates is no larger than the sweeps' scatter.
    #[serde(rename = "not-told-apart")]
    NotSignificant,
    /// There are too few sweeps to decide whether the rates differ.
    TooFewSweeps,
    /// The rates differ by more than the sweeps' scatter, but a rule that is mandatory for
    /// comparisons is unknown.
    NotShown,
    /// At least one side of the comparison has no valid figure.
    NotCompared,
}

/// One figure of a cell on both sides of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellFigure {
    /// Mean of the first side of the comparison.
    pub first: Option<f64>,
    /// Mean of the second side of the comparison.
    pub second: Option<f64>,
    /// Mean of the second side of the comparison divided by the mean of the first side.
    pub ratio: Option<f64>,
}

/// A point that both sweeps measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCell {
    /// Name such as `random 4KiB r75 q4`.
    pub label: String,
    /// Pattern, depth, size and read share of the I/O.
    #[serde(flatten)]
    pub shape: IoShape,
    /// Operations per second.
    pub rate_per_s: CellFigure,
    /// 95 % confidence interval of the ratio of the rates.
    pub rate_ratio_interval: Option<[f64; 2]>,
    /// Kind of scatter from which the interval of the ratio was computed.
    pub interval_of: Option<IntervalOf>,
    /// Mean latency.
    pub latency_ns_avg: CellFigure,
    /// 99th percentile of the latency. If a side of the comparison has several sweeps, this is the
    /// mean of their 99th percentiles.
    pub latency_ns_p99: CellFigure,
    /// Conclusion about the rates.
    #[serde(rename = "apart")]
    pub outcome: CellOutcome,
    /// Reason why the cell is not compared or not decided; otherwise empty.
    pub note: String,
}

impl AsRef<IoShape> for SweepCell {
    fn as_ref(&self) -> &IoShape {
        &self.shape
    }
}

/// Summary of one figure over all cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    pub cells: usize,
    /// Geometric mean of the ratios.
    pub ratio_mean: Option<f64>,
    /// Smallest ratio.
    pub ratio_min: Option<f64>,
    /// Largest ratio.
    pub ratio_max: Option<f64>,
}

/// Two sweeps side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepComparison {
    /// Names of the sides of the comparison. The first is the baseline.
    pub names: [String; 2],
    /// Number of sweeps on each side of the comparison. If cells have different numbers of sweeps,
    /// the smallest number.
    pub sweeps: [usize; 2],
    /// Conclusion of the comparison.
    pub outcome: Outcome,
    /// Name of the winner; `None` if no side of the comparison wins.
    pub winner: Option<String>,
    /// Headline sentence.
    pub reason: String,
    /// Rates of all cells together.
    pub rate: Overall,
    /// Mean latencies of all cells together.
    pub latency_avg: Overall,
    /// 99th percentiles of all cells together.
    pub latency_p99: Overall,
    /// Cells that exist on both sides of the comparison, in the order of the first side.
    pub cells: Vec<SweepCell>,
    /// Conditions that differ in any cell.
    #[serde(rename = "unlike")]
    pub differences: Vec<ConditionDifference>,
    /// Remarks on skipped cells and on the meaning of the intervals.
    pub remarks: Vec<String>,
}

/// Runs of one side of the comparison that measured one point of the sweep.
struct CellRuns<'a> {
    points: Vec<SweepPoint>,
    runs: Vec<(&'a Bundle, &'a Verdict)>,
}

/// Compares two sides. Each side of the comparison contains the points of one or more sweeps of the
/// same plan.
pub fn compare_sweeps(sides: &[Side<'_>; 2], accepted: &[String]) -> SweepComparison {
    let (first, second) = (by_label(&sides[0]), by_label(&sides[1]));
    let order = labels(&sides[0]);
    let common: Vec<&String> = order.iter().filter(|label| second.contains_key(*label)).collect();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / common.len().max(1) as f64;
    let mut cells = Vec::new();
    let mut differences = CellDifferences::default();
    let mut sweeps = [usize::MAX; 2];
    for label in &common {
        let (Some(a), Some(b)) = (first.get(*label), second.get(*label)) else { continue };
        sweeps = [sweeps[0].min(a.points.len()), sweeps[1].min(b.points.len())];
        let cell = cell(a, b, confidence, accepted);
        if cell.outcome != CellOutcome::NotCompared {
            differences.note(sides, a, b, accepted);
        }
        cells.push(cell);
    }
    if cells.is_empty() {
        sweeps = [0; 2];
    }
    let names = [sides[0].name.clone(), sides[1].name.clone()];
    let differences = differences.into_differences();
    let rate = overall(&cells, |cell| cell.rate_per_s);
    let (outcome, winner, reason) = decide(&names, &cells, &rate, sweeps, &differences);
    SweepComparison {
        remarks: remarks(sides, [&first, &second], &cells, sweeps, &differences, accepted),
        names,
        sweeps,
        outcome,
        winner,
        reason,
        rate,
        latency_avg: overall(&cells, |cell| cell.latency_ns_avg),
        latency_p99: overall(&cells, |cell| cell.latency_ns_p99),
        cells,
        differences,
    }
}

/// Groups the completed points of a side of the comparison by label.
fn by_label<'a>(side: &Side<'a>) -> BTreeMap<String, CellRuns<'a>> {
    let mut all: BTreeMap<String, CellRuns<'a>> = BTreeMap::new();
    let completed = |run: &&(&Bundle, &Verdict)| run.0.run.end.kind == EndKind::Completed;
    for &(bundle, verdict) in side.runs.iter().filter(completed) {
        let Some(point) = SweepPoint::of(bundle, verdict) else { continue };
        let entry = all.entry(point.label.clone());
        let at = entry.or_insert_with(|| CellRuns { points: Vec::new(), runs: Vec::new() });
        at.points.push(point);
        at.runs.push((bundle, verdict));
    }
    all
}

/// Returns the labels in the order of their first measurement.
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

fn cell(a: &CellRuns<'_>, b: &CellRuns<'_>, confidence: f64, accepted: &[String]) -> SweepCell {
    let shown = &a.points[0];
    let invalid =
        |side: &CellRuns<'_>| side.points.iter().any(|point| point.verdict == VerdictKind::Invalid);
    let figure = |of: fn(&SweepPoint) -> Option<f64>| {
        let (first, second) = (mean(a, of), mean(b, of));
        let ratio = first.zip(second).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
        CellFigure { first, second, ratio }
    };
    let mut cell = SweepCell {
        label: shown.label.clone(),
        shape: shown.shape.clone(),
        rate_per_s: figure(|point| point.rate_per_s),
        rate_ratio_interval: None,
        interval_of: None,
        latency_ns_avg: figure(|point| point.latency_ns_avg.map(|ns| ns as f64)),
        latency_ns_p99: figure(|point| point.latency_ns_p99.map(|ns| ns as f64)),
        outcome: CellOutcome::TooFewSweeps,
        note: String::new(),
    };
    // The verdict alone does not exclude a cache: a run without claims is MEASURED even if a cache
    // served its reads.
    let refuted = |side: &CellRuns<'_>| {
        let mut runs = side.runs.iter();
        runs.find_map(|(_, verdict)| Some(doubt::refuted(verdict, accepted)?.rule.clone()))
    };
    let refused = match (invalid(a), invalid(b), cell.rate_per_s.ratio) {
        (true, true, _) => "INVALID on both sides".to_owned(),
        (true, false, _) => "INVALID on the first side".to_owned(),
        (false, true, _) => "INVALID on the second side".to_owned(),
        (false, false, None) => "at least one side has no measured rate".to_owned(),
        (false, false, Some(_)) => match (refuted(a), refuted(b)) {
            (Some(rule), _) => format!("{rule} failed on the first side"),
            (None, Some(rule)) => format!("{rule} failed on the second side"),
            (None, None) => String::new(),
        },
    };
    if !refused.is_empty() {
        cell.note = refused;
        cell.outcome = CellOutcome::NotCompared;
        for figure in [&mut cell.rate_per_s, &mut cell.latency_ns_avg, &mut cell.latency_ns_p99] {
            figure.ratio = None;
        }
        return cell;
    }
    classify(&mut cell, a, b, confidence);
    let unknown = |side: &CellRuns<'_>| {
        let mut runs = side.runs.iter();
        runs.find_map(|(bundle, verdict)| doubt::unknown(bundle, verdict, accepted).next())
            .map(|finding| finding.rule.clone())
    };
    if matches!(cell.outcome, CellOutcome::Higher | CellOutcome::Lower) {
        let which = match (unknown(a), unknown(b)) {
            (Some(rule), _) => Some((rule, "first")),
            (None, Some(rule)) => Some((rule, "second")),
            (None, None) => None,
        };
        if let Some((rule, side)) = which {
            cell.outcome = CellOutcome::NotShown;
            cell.note = format!("{rule} is unknown on the {side} side");
        }
    }
    cell
}

/// Computes the interval of a cell's ratio, and decides whether the difference exceeds the noise.
fn classify(cell: &mut SweepCell, a: &CellRuns<'_>, b: &CellRuns<'_>, confidence: f64) {
    let rates = |side: &CellRuns<'_>| -> Vec<f64> {
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
            cell.outcome = match (compared.significant, compared.ratio.mean > 1.0) {
                (true, true) => CellOutcome::Higher,
                (true, false) => CellOutcome::Lower,
                (false, _) => CellOutcome::NotSignificant,
            };
        }
        return;
    }
    let within = |side: &CellRuns<'_>| match &side.points[..] {
        [one] => half_width_log(one.rate_interval_per_s?),
        _ => None,
    };
    if let (Some(a), Some(b), Some(ratio)) = (within(a), within(b), cell.rate_per_s.ratio) {
        let half = libm::hypot(a, b);
        cell.rate_ratio_interval = Some([ratio * libm::exp(-half), ratio * libm::exp(half)]);
        cell.interval_of = Some(IntervalOf::WithinPoint);
    }
}

/// Returns half of an interval's width on a logarithmic scale; `None` if the lower end is not above
/// zero.
fn half_width_log([low, high]: [f64; 2]) -> Option<f64> {
    (low > 0.0 && high >= low).then(|| 0.5 * libm::log(high / low))
}

fn mean(side: &CellRuns<'_>, of: fn(&SweepPoint) -> Option<f64>) -> Option<f64> {
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
    differences: &[ConditionDifference],
) -> (Outcome, Option<String>, String) {
    let [a, b] = names;
    let (Some(mean), Some(least), Some(most)) = (rate.ratio_mean, rate.ratio_min, rate.ratio_max)
    else {
        let says = match cells.len() {
            0 => "The two sweeps have no common point.".to_owned(),
            n => format!(
                "None of the {n} common points has a valid figure on both sides of the comparison."
            ),
        };
        return (Outcome::TooFewRuns, None, says);
    };
    let summary = format!(
        "Operations per second, {b} divided by {a}: {mean:.3} (geometric mean of {} cells), from \
         {least:.3} to {most:.3}.",
        rate.cells
    );
    let open: Vec<&str> =
        differences.iter().filter(|one| !one.accepted).map(|one| one.name.as_str()).collect();
    if !open.is_empty() {
        let says = format!(
            "{summary} No winner: {} conditions differ ({}). Make these conditions equal, or accept \
             each difference with --accept.",
            open.len(),
            super::decide::join_names(&open)
        );
        return (Outcome::UnlikeConditions, None, says);
    }
    let of = |outcome| cells.iter().filter(|cell| cell.outcome == outcome).count();
    let (higher, lower, same) =
        (of(CellOutcome::Higher), of(CellOutcome::Lower), of(CellOutcome::NotSignificant));
    let first_open = cells.iter().find(|cell| cell.outcome == CellOutcome::NotShown);
    if let Some(cell) = first_open {
        let says = format!(
            "{summary} No winner: {} cells differ significantly, but a required rule is unknown \
             ({}, in {}). Repair this, or accept the rule with --accept.",
            of(CellOutcome::NotShown),
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
            "{summary} {each} sweeps per side cannot show a difference: at least {RUNS_MIN} sweeps \
             per side are needed."
        );
        return (Outcome::TooFewRuns, None, says);
    }
    let counted = format!(
        "higher in {higher} cells and lower in {lower}, without a significant difference in {same} \
         cells"
    );
    let says = format!("{summary} {b} is {counted}.");
    match (higher, lower) {
        (0, 0) => (Outcome::NotSignificant, None, says),
        (_, 0) => (Outcome::Differ, Some(b.clone()), says),
        (0, _) => (Outcome::Differ, Some(a.clone()), says),
        _ => (Outcome::Differ, None, says),
    }
}

/// Returns the conditions that differ in at least one cell.
#[derive(Default)]
struct CellDifferences {
    all: BTreeMap<String, ([BTreeSet<String>; 2], bool)>,
}

impl CellDifferences {
    fn note<'a>(
        &mut self,
        sides: &[Side<'_>; 2],
        a: &CellRuns<'a>,
        b: &CellRuns<'a>,
        taken: &[String],
    ) {
        let of = |side: &Side<'_>, at: &CellRuns<'a>| Side {
            name: side.name.clone(),
            runs: at.runs.clone(),
        };
        let pair = [of(&sides[0], a), of(&sides[1], b)];
        for one in conditions::differing_conditions(&pair, taken, &[]) {
            let entry = self.all.entry(one.name).or_default();
            entry.1 = one.accepted;
            for (set, value) in entry.0.iter_mut().zip(one.values) {
                set.insert(value);
            }
        }
    }

    fn into_differences(self) -> Vec<ConditionDifference> {
        let joined = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" and ");
        let one = |(name, (values, accepted)): (String, ([BTreeSet<String>; 2], bool))| {
            ConditionDifference {
                name,
                values: values.into_iter().map(joined).collect(),
                accepted,
                factor: false,
            }
        };
        self.all.into_iter().map(one).collect()
    }
}

fn remarks(
    sides: &[Side<'_>; 2],
    found: [&BTreeMap<String, CellRuns<'_>>; 2],
    cells: &[SweepCell],
    sweeps: [usize; 2],
    differences: &[ConditionDifference],
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
            let (count, few) = (alone.len(), super::decide::join_names(&alone));
            remarks.push(format!("{count} points exist only on the side {}: {few}.", side.name));
        }
        let ended = side.runs.len() - side.completed().count();
        if ended > 0 {
            remarks.push(format!("{ended} points of {} did not complete.", side.name));
        }
    }
    let refused = cells.iter().filter(|cell| cell.outcome == CellOutcome::NotCompared).count();
    if refused > 0 {
        remarks
            .push(format!("{refused} cells are not compared; the reason is given for each cell."));
    }
    if cells.iter().any(|cell| cell.interval_of == Some(IntervalOf::WithinPoint)) {
        remarks.push(
            "The intervals include the scatter within each point, but not the changes from one \
             sweep to the next. Run several sweeps per side to include these changes."
                .to_owned(),
        );
    }
    if sweeps.iter().all(|count| *count >= RUNS_MIN) {
        remarks.push(format!(
            "The risk of a false difference is 5 % for all {} cells together.",
            cells.len()
        ));
    }
    remarks.extend(super::unmatched_acceptances(differences, accepted));
    remarks
}
