//! Conclusion of a comparison. The checks follow the order in which a buyer would ask.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind};
use serde::{Deserialize, Serialize};

use super::conditions::INVALID_RUNS;
use super::{ConditionDifference, Metric, Side, doubt};
use crate::finding;
use crate::judge::HEADROOM_SHOWN_MAX;
use crate::rules;
use crate::stats::welch::RUNS_MIN;
use crate::verdict::{Verdict, VerdictKind};
use crate::words::many;

/// Minimum headroom at which a requirement counts as met with headroom. Capacity planning reserves
/// this share for growth and node failures.
const HEADROOM: f64 = 0.2;

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every side of the comparison meets the requirement with headroom, so the difference between
    /// them should not matter.
    AllMeetWithHeadroom,
    /// Exactly one side of the comparison meets the requirement.
    OneMeets,
    /// No side of the comparison meets the requirement.
    NoneMeets,
    /// No winner: a rule refutes the figure of a run.
    NotBelieved,
    /// No winner: a rule that is mandatory for comparisons is unknown in a run.
    NotShown,
    /// No winner: conditions differ and were not accepted.
    UnlikeConditions,
    /// There are too few runs per side to distinguish a difference from noise.
    TooFewRuns,
    /// The difference of the first figure exceeds the scatter of the runs.
    Differ,
    /// The difference of the first figure does not exceed the scatter of the runs.
    #[serde(rename = "not-told-apart")]
    NotSignificant,
}

/// Number of runs of a side of the comparison that meet the requirement, and related counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementResult {
    /// Number of runs on this side of the comparison.
    pub runs: usize,
    /// Number of runs that pass.
    pub passed: usize,
    /// Number of runs that fail. INCONCLUSIVE and INVALID runs count neither as passed nor as
    /// failed.
    #[serde(default)]
    pub failed: usize,
    /// Number of runs without a requirement.
    pub measured: usize,
    /// Verdicts in words: `PASS 3`, `FAIL 1`.
    pub verdicts: String,
    /// Smallest headroom among the runs of the side.
    pub headroom_min: Option<f64>,
}

impl RequirementResult {
    /// Returns true if every run passes.
    pub fn meets(&self) -> bool {
        self.runs > 0 && self.passed == self.runs
    }

    /// Returns true if every run meets the requirement with headroom.
    fn with_headroom(&self) -> bool {
        self.meets() && self.headroom_min.is_some_and(|headroom| headroom >= HEADROOM)
    }
}

pub(super) fn requirement_result(side: &Side<'_>) -> RequirementResult {
    let verdicts: Vec<VerdictKind> = side.runs.iter().map(|(_, v)| v.verdict).collect();
    let headrooms: Option<Vec<f64>> = side.runs.iter().map(|(_, v)| v.headroom).collect();
    let headroom_min = headrooms.and_then(|all| all.into_iter().reduce(f64::min));
    RequirementResult { headroom_min, ..count_verdicts(&verdicts) }
}

/// Counts the verdicts on the runs of a side.
pub(super) fn count_verdicts(verdicts: &[VerdictKind]) -> RequirementResult {
    let of = |kind: VerdictKind| verdicts.iter().filter(|v| **v == kind).count();
    let kinds = [
        VerdictKind::Pass,
        VerdictKind::Measured,
        VerdictKind::Fail,
        VerdictKind::Inconclusive,
        VerdictKind::Invalid,
    ];
    let words: Vec<String> = kinds
        .into_iter()
        .filter(|kind| of(*kind) > 0)
        .map(|kind| format!("{kind} {}", of(kind)))
        .collect();
    RequirementResult {
        runs: verdicts.len(),
        passed: of(VerdictKind::Pass),
        failed: of(VerdictKind::Fail),
        measured: of(VerdictKind::Measured),
        verdicts: words.join(", "),
        headroom_min: None,
    }
}

pub(super) struct Decision {
    pub outcome: Outcome,
    pub winner: Option<String>,
    pub reason: String,
}

impl Decision {
    fn new(outcome: Outcome, reason: String) -> Self {
        Self { outcome, winner: None, reason }
    }
}

pub(super) fn decide(
    sides: &[Side<'_>],
    requirements: &[RequirementResult],
    metrics: &[Metric],
    differences: &[ConditionDifference],
    accepted: &[String],
) -> Decision {
    if requirements.iter().all(RequirementResult::with_headroom) {
        let each = sides.iter().zip(requirements).map(|(side, requirement)| {
            match requirement.headroom_min.unwrap_or(0.0) {
                headroom if headroom > HEADROOM_SHOWN_MAX => {
                    format!("{} more than 10 times", side.name)
                }
                headroom => format!("{} {:.0} %", side.name, headroom * 100.0),
            }
        });
        let each: Vec<String> = each.collect();
        // A doubtful figure prevents a winner even if the requirement is met.
        let doubt = find_refuted(sides, accepted).or_else(|| not_shown(sides, accepted));
        let describe = |primary: Primary| match (primary.winner, &doubt) {
            (Some(_), Some(doubt)) => format!("{}. {doubt}", primary.summary),
            _ => primary.says,
        };
        return Decision::new(
            Outcome::AllMeetWithHeadroom,
            format!(
                "{} meet the requirement with headroom ({}), so the difference between them should \
                 not decide.{}",
                if sides.len() == 2 { "Both" } else { "All" },
                each.join(", "),
                primary(sides, metrics).map_or(String::new(), |p| format!(" {}", describe(p))),
            ),
        );
    }
    if let Some(reason) = differing(differences) {
        return Decision::new(Outcome::UnlikeConditions, reason);
    }
    if let Some(reason) = find_refuted(sides, accepted) {
        return Decision::new(Outcome::NotBelieved, reason);
    }
    if let Some(decision) = by_requirement(sides, requirements) {
        return decision;
    }
    by_figures(sides, metrics, accepted)
}

/// Describes the conditions that differ and were not accepted.
fn differing(unlike: &[ConditionDifference]) -> Option<String> {
    let open: Vec<&str> =
        unlike.iter().filter(|one| !one.accepted).map(|one| one.name.as_str()).collect();
    (!open.is_empty()).then(|| {
        let names = join_names(&open);
        match open.len() {
            1 => format!(
                "No winner: a condition differs ({names}). Make it equal on all sides of the \
                 comparison, or accept the difference with --accept."
            ),
            count => format!(
                "No winner: {count} conditions differ ({names}). Make these conditions equal, or \
                 accept each difference with --accept."
            ),
        }
    })
}

/// Returns the reason why the runs cannot be compared, independent of their figures.
pub(super) fn doubt(
    sides: &[Side<'_>],
    unlike: &[ConditionDifference],
    accepted: &[String],
) -> Option<String> {
    let found = sides
        .iter()
        .find_map(incomplete)
        .or_else(|| differing(unlike))
        .or_else(|| find_refuted(sides, accepted))
        .or_else(|| not_shown(sides, accepted))?;
    Some(found.strip_prefix("No winner: ").map_or(found.clone(), capitalised))
}

/// Describes a run that did not complete. The incomplete runs may have been the slowest ones, so
/// the side may look better without them.
fn incomplete(side: &Side<'_>) -> Option<String> {
    let (bundle, _) = side.runs.iter().find(|(b, _)| b.run.end.kind != EndKind::Completed)?;
    let (run, name) = (&bundle.run.run_id, &side.name);
    Some(format!("No winner: run {run} of {name} did not complete. Repeat or remove it."))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// Describes a measurement that two sides share, for example because the new side is a copy of the
/// baseline. A model's runs may be identical.
fn find_shared(sides: &[Side<'_>]) -> Option<String> {
    let runs = sides.iter().enumerate().flat_map(|(at, side)| {
        let real = side.completed().filter(|(bundle, _)| bundle.run.driver != Driver::Model);
        real.filter_map(move |(bundle, _)| Some((at, bundle.seal_sha256.as_ref()?, bundle)))
    });
    let runs: Vec<_> = runs.collect();
    runs.iter().find_map(|(at, seal, bundle)| {
        let (other, ..) = runs.iter().find(|(other, known, _)| other < at && known == seal)?;
        Some(format!(
            "No winner: {} and {} contain the same run {}. Compare different measurements.",
            sides[*other].name, sides[*at].name, bundle.run.run_id
        ))
    })
}

/// Returns the failed rule that makes the comparison invalid, even if the run itself does not claim
/// to be comparable. The user can accept this rule by its name, or all such rules by the name of
/// the condition.
fn find_refuted(sides: &[Side<'_>], accepted: &[String]) -> Option<String> {
    let copied = |side: &Side<'_>| {
        let runs: Vec<&Bundle> = side.completed().map(|(bundle, _)| *bundle).collect();
        let finding = (rules::experiment::copied::RULE.check)(&runs)?;
        let says = format!("No winner: {}: {}. Remove the copies.", side.name, finding.says);
        (finding.outcome == finding::Outcome::Fail).then_some(says)
    };
    if let Some(says) = sides.iter().find_map(copied).or_else(|| find_shared(sides)) {
        return Some(says);
    }
    if accepted.iter().any(|word| word == INVALID_RUNS) {
        return None;
    }
    sides.iter().find_map(|side| {
        let refuted = |(bundle, verdict): &(&Bundle, &Verdict)| {
            let finding = doubt::refuted(verdict, accepted)?;
            Some((bundle.run.run_id.clone(), finding.clone()))
        };
        let (run, finding) = side.completed().find_map(refuted)?;
        let (name, rule) = (&side.name, &finding.rule);
        Some(format!(
            "No winner: run {run} of {name} is not a valid measurement: {} ({rule}). Repair this, \
             or accept it with --accept {rule}.",
            finding.says
        ))
    })
}

/// Returns the rule that is mandatory for comparisons but unknown in a run.
fn not_shown(sides: &[Side<'_>], accepted: &[String]) -> Option<String> {
    sides.iter().find_map(|side| {
        let unknown = |(bundle, verdict): &(&Bundle, &Verdict)| {
            let finding = doubt::unknown(bundle, verdict, accepted).next()?;
            Some((bundle.run.run_id.clone(), finding.clone()))
        };
        let (run, finding) = side.completed().find_map(unknown)?;
        let (name, rule) = (&side.name, &finding.rule);
        Some(format!(
            "No winner: it is uncertain whether the figure of run {run} of {name} is comparable: {} \
             ({rule}). Repair this, or accept it with --accept {rule}.",
            finding.says
        ))
    })
}

/// Joins at most six names, and states how many more there are.
pub(super) fn join_names(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let mut text = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Decides with the requirement, if exactly one side of the comparison meets it, or no side does.
fn by_requirement(sides: &[Side<'_>], requirements: &[RequirementResult]) -> Option<Decision> {
    if requirements.iter().any(|requirement| requirement.measured > 0) {
        return None;
    }
    let failed = |requirement: &RequirementResult| {
        requirement.runs > 0 && requirement.failed == requirement.runs
    };
    let meeting: Vec<usize> = (0..sides.len()).filter(|&i| requirements[i].meets()).collect();
    let failing = requirements.iter().filter(|requirement| failed(requirement)).count();
    match meeting[..] {
        [one] if failing == sides.len() - 1 => Some(Decision {
            outcome: Outcome::OneMeets,
            winner: Some(sides[one].name.clone()),
            reason: format!("Only {} meets the requirement.", sides[one].name),
        }),
        [] if failing == sides.len() => {
            let says = "No side meets the requirement in any run.".to_owned();
            Some(Decision::new(Outcome::NoneMeets, says))
        }
        _ => None,
    }
}

fn by_figures(sides: &[Side<'_>], metrics: &[Metric], accepted: &[String]) -> Decision {
    let Some(primary) = primary(sides, metrics) else {
        let says =
            "There is no figure that was measured on both sides of the comparison.".to_owned();
        return Decision::new(Outcome::TooFewRuns, says);
    };
    let doubt = primary.winner.as_ref().and_then(|_| not_shown(sides, accepted));
    match doubt {
        Some(doubt) => Decision::new(Outcome::NotShown, format!("{doubt} {}.", primary.summary)),
        None => Decision { outcome: primary.outcome, winner: primary.winner, reason: primary.says },
    }
}

/// Conclusion that follows from the first figure.
struct Primary {
    outcome: Outcome,
    winner: Option<String>,
    /// Describes the ratios of the sides of the comparison.
    summary: String,
    says: String,
}

/// Returns the deciding figure: the rate, or in an open loop the first latency.
pub(super) fn judged<'a>(sides: &[Side<'_>], metrics: &'a [Metric]) -> Option<&'a Metric> {
    let closed = sides.iter().flat_map(|s| &s.runs).all(|(b, _)| b.run.engine.closed_loop);
    metrics.iter().find(|m| !m.estimate && m.higher_is_better == closed)
}

/// Returns the conclusion from the deciding figure.
fn primary(sides: &[Side<'_>], metrics: &[Metric]) -> Option<Primary> {
    let metric = judged(sides, metrics)?;
    let first = metric.sides.first()?;
    let best = |a: f64, b: f64| if metric.higher_is_better { a > b } else { a < b };
    // Searches for the side with the best ratio.
    let (mut at, mut ratio) = (0, 1.0);
    for (i, side) in metric.sides.iter().enumerate().skip(1) {
        if let Some(r) = side.ratio.filter(|r| best(*r, ratio)) {
            (at, ratio) = (i, r);
        }
    }
    let runs = metric.sides.iter().map(|side| side.values.len()).min().unwrap_or(0);
    let by = |ratio: f64| format!("{:.1} %", (ratio - 1.0).abs() * 100.0);
    let interval = |side: &super::SideFigure| {
        let interval = side.ratio_interval.map(|[low, high]| format!("{low:.3} to {high:.3}"));
        interval.unwrap_or_else(|| "n/a".to_owned())
    };
    let shown: Vec<String> = sides
        .iter()
        .zip(&metric.sides)
        .skip(1)
        .filter_map(|(side, figure)| {
            let ratio = figure.ratio?;
            Some(format!(
                "{} divided by {} is {ratio:.3} ({})",
                side.name,
                sides[0].name,
                interval(figure)
            ))
        })
        .collect();
    if shown.is_empty() || first.values.is_empty() {
        return None;
    }
    let summary = format!("{}: {}", metric.name, shown.join("; "));
    if runs < RUNS_MIN {
        let more = RUNS_MIN - runs;
        let runs = many(runs, "run");
        let says = format!(
            "{summary}. {runs} per side cannot show a difference: {RUNS_MIN} runs are needed, so \
             make {more} more per side."
        );
        return Some(Primary { outcome: Outcome::TooFewRuns, winner: None, summary, says });
    }
    // True if the side with the best ratio is significantly better than the first side of the
    // comparison. If the first side has the best ratio, it must be significantly better than all
    // other sides.
    let significant = |side: &super::SideFigure| side.significant == Some(true);
    let clear = match at {
        0 => metric.sides.iter().skip(1).all(significant),
        at if sides.len() == 2 => significant(&metric.sides[at]),
        at => significant(&metric.sides[at]) && leads_all(metric, at),
    };
    if !clear {
        let says =
            format!("{summary}: no significant difference{}.", runs_to_resolve(metric, runs));
        return Some(Primary { outcome: Outcome::NotSignificant, winner: None, summary, says });
    }
    let margin = if at == 0 { String::new() } else { format!(" by {}", by(ratio)) };
    let says = format!("{} is significantly better{margin}. {summary}.", sides[at].name);
    Some(Primary { outcome: Outcome::Differ, winner: Some(sides[at].name.clone()), summary, says })
}

/// Maximum number of runs per side that Plimsoll advises.
const RUNS_ADVISED_MAX: f64 = 100.0;

/// Returns a text with the number of runs per side that would resolve the observed difference at
/// the observed scatter. Intervals shrink with the square root of the number of runs.
fn runs_to_resolve(metric: &Metric, runs: usize) -> String {
    let needed = metric.sides.iter().skip(1).filter_map(|side| {
        let (ratio, [low, high]) = side.ratio.zip(side.ratio_interval)?;
        let half = (libm::log(high) - libm::log(low)) / 2.0;
        let times = (half / libm::log(ratio).abs()).powi(2);
        times.is_finite().then_some((runs as f64 * times).ceil())
    });
    match needed.reduce(f64::min) {
        Some(needed) if needed > runs as f64 && needed <= RUNS_ADVISED_MAX => {
            format!(" (about {needed:.0} runs per side would resolve a difference of this size)")
        }
        Some(needed) if needed > RUNS_ADVISED_MAX => {
            format!(
                " (even {RUNS_ADVISED_MAX:.0} runs per side would not resolve a difference of \
                this size)"
            )
        }
        _ => String::new(),
    }
}

/// Returns true if a side is better than every other side by more than noise. All these comparisons
/// together have one error probability.
fn leads_all(metric: &Metric, at: usize) -> bool {
    let others = (metric.sides.len() - 1).max(1) as f64;
    let confidence = 1.0 - 0.05 / others;
    metric.sides.iter().enumerate().filter(|(i, _)| *i != at).all(|(_, other)| {
        let ahead = &metric.sides[at];
        crate::stats::welch::compare_at(&other.values, &ahead.values, confidence)
            .is_ok_and(|c| c.significant)
    })
}

#[cfg(test)]
mod tests {
    use super::super::SideFigure;
    use super::*;

    fn metric(ratio: f64, half: f64) -> Metric {
        let side = |ratio: Option<f64>| SideFigure {
            values: vec![1.0; 4],
            mean: Some(1.0),
            interval: None,
            spread: None,
            ratio,
            ratio_interval: ratio.map(|r| [r * libm::exp(-half), r * libm::exp(half)]),
            significant: ratio.map(|_| false),
        };
        Metric {
            key: "k".to_owned(),
            name: "n".to_owned(),
            higher_is_better: true,
            estimate: false,
            sides: vec![side(None), side(Some(ratio))],
            says: String::new(),
        }
    }

    #[test]
    fn without_a_significant_difference_the_runs_that_would_resolve_one_are_named() {
        // Intervals shrink with the square root: halving the width requires four times the runs.
        let says = runs_to_resolve(&metric(libm::exp(0.05), 0.0999), 4);
        assert_eq!(says, " (about 16 runs per side would resolve a difference of this size)");
        let says = runs_to_resolve(&metric(libm::exp(0.001), 0.1), 4);
        assert!(says.contains("even 100 runs per side would not"), "{says}");
        assert_eq!(runs_to_resolve(&metric(1.0, 0.1), 4), "");
    }
}
