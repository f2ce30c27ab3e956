//! Compares predictions with two methods that need no model: copying the nearest known row, and
//! interpolating between the nearest rows on both sides. A model that is not better than these
//! methods explains nothing.
//!
//! The error of a figure is |ln(predicted / published)|, so that half and double have equal errors.
//! The median over the figures is used.

use plimsoll_model::stats::quantile;
use serde::{Deserialize, Serialize};

use super::arm::ArmAnalysis;
use super::{Input, PublishedFigure, Role, points};

/// One prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreLine {
    pub arm: String,
    pub figure: String,
    pub published: f64,
    /// Value that the model predicted.
    pub predicted: f64,
    /// Value of the nearest known row, with the row's arm; `None` if no other row has the figure.
    pub copied: Option<(String, f64)>,
    /// Value interpolated between the rows on both sides; `None` if one side has no row.
    pub interpolated: Option<f64>,
}

impl ScoreLine {
    /// Returns the absolute logarithm of a value divided by the published figure.
    pub fn error_of(&self, value: f64) -> f64 {
        libm::fabs(libm::log(value / self.published))
    }
}

/// Errors over all predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Each prediction.
    pub lines: Vec<ScoreLine>,
    /// Median error of the model over all lines.
    pub model_error_median: f64,
    /// Median error of copying, over the lines for which a row could be copied.
    pub copied_error_median: Option<f64>,
    /// Median error of interpolation, over the lines that have rows on both sides.
    pub interpolated_error_median: Option<f64>,
    /// Number of published figures that are not counted, because they were inputs.
    pub inputs: usize,
}

pub(super) fn score(input: &Input<'_>, arms: &[ArmAnalysis]) -> Option<Score> {
    let place = |name: &str| arms.iter().position(|arm| arm.name == name);
    let mut lines = Vec::new();
    for given in input.given.iter().filter(|given| given.role != Role::Input && given.value > 0.0) {
        let Some(at) = place(&given.arm) else { continue };
        let mean = arms[at].figure(&given.figure).and_then(|figure| figure.mean);
        let Some(predicted) = mean.filter(|mean| *mean > 0.0) else { continue };
        let known: Vec<(usize, &PublishedFigure)> = input
            .given
            .iter()
            .filter(|other| other.figure == given.figure && other.arm != given.arm)
            .filter(|other| other.role.was_known() && other.value > 0.0)
            .filter_map(|other| Some((place(&other.arm)?, other)))
            .collect();
        let in_table = arms[at].point.is_some() && !arms[at].group.is_empty();
        lines.push(ScoreLine {
            arm: given.arm.clone(),
            figure: given.figure.clone(),
            published: given.value,
            predicted,
            copied: if in_table {
                points::twin(input, arms, &arms[at], &given.figure)
            } else {
                nearest(at, &known)
            },
            interpolated: if in_table {
                points::interpolated(arms, &arms[at], &given.figure)
            } else {
                between(at, &known)
            },
        });
    }
    if lines.is_empty() {
        return None;
    }
    let over = |value: &dyn Fn(&ScoreLine) -> Option<f64>| {
        let errors = lines.iter().filter_map(|line| Some(line.error_of(value(line)?)));
        quantile(&mut errors.collect::<Vec<_>>(), 0.5)
    };
    Some(Score {
        model_error_median: over(&|line| Some(line.predicted)).unwrap_or(0.0),
        copied_error_median: over(&|line| line.copied.as_ref().map(|copied| copied.1)),
        interpolated_error_median: over(&|line| line.interpolated),
        inputs: input.given.iter().filter(|given| given.role == Role::Input).count(),
        lines,
    })
}

/// Returns the nearest known row, in the order of the experiment's arms.
fn nearest(at: usize, known: &[(usize, &PublishedFigure)]) -> Option<(String, f64)> {
    let closest = known.iter().min_by_key(|(other, _)| other.abs_diff(at));
    closest.map(|(_, given)| (given.arm.clone(), given.value))
}

/// Interpolates between the nearest known rows on both sides. The position of a row is its index in
/// the order of the experiment's arms.
fn between(at: usize, known: &[(usize, &PublishedFigure)]) -> Option<f64> {
    let before = known.iter().filter(|(other, _)| *other < at).max_by_key(|(other, _)| *other)?;
    let after = known.iter().filter(|(other, _)| *other > at).min_by_key(|(other, _)| *other)?;
    let share = (at - before.0) as f64 / (after.0 - before.0) as f64;
    Some(before.1.value + share * (after.1.value - before.1.value))
}

#[cfg(test)]
mod tests {
    use plimsoll_judge::judge;

    use super::super::{Arm, Ending, Role, analyse};
    use super::*;
    use crate::fixtures;

    const RATE: &str = "achieved_iops_per_s";

    fn given(arm: &str, value: f64, role: Role) -> PublishedFigure {
        let (arm, figure) = (arm.to_owned(), RATE.to_owned());
        PublishedFigure { arm, figure, value, role, source: String::new() }
    }

    #[test]
    fn predictions_are_held_against_a_copied_row_and_a_line_between_rows() {
        let bundle = fixtures::run(&fixtures::plan(fixtures::PLAN), "run", 10_000.0, 800_000);
        let verdict = judge(&bundle);
        let arm = |name: &str| Arm {
            name: name.to_owned(),
            title: String::new(),
            group: String::new(),
            servers: 2,
            changes: Vec::new(),
            expects: None,
            caught_by: Vec::new(),
            runs: vec![(&bundle, &verdict)],
            planned: 1,
        };
        // Each server has half of 10,000 I/Os per second, except for a server that is stopped at
        // the end.
        let mut input = Input {
            name: "made-up".to_owned(),
            title: String::new(),
            modelled: true,
            tolerance: 0.15,
            judged: vec![RATE.to_owned()],
            reference: Some("a".to_owned()),
            arms: vec![arm("a"), arm("b"), arm("c")],
            given: vec![
                given("a", 4_000.0, Role::Input),
                given("b", 5_000.0, Role::Kept),
                given("c", 8_000.0, Role::Input),
            ],
            questions: Vec::new(),
            claims: Vec::new(),
            goals: Vec::new(),
            arithmetic: Vec::new(),
            fitted: Vec::new(),
            inputs: Vec::new(),
            own_parameters: Vec::new(),
            searches: Vec::new(),
            panels: Vec::new(),
            cumulative: false,
        };
        let analysis = analyse(&input);
        let score = analysis.score.unwrap();
        assert_eq!((score.lines.len(), score.inputs), (1, 2));
        let line = &score.lines[0];
        assert_eq!(line.published, 5_000.0);
        assert!((line.predicted - 5_000.0).abs() < 0.1, "{}", line.predicted);
        assert_eq!(line.copied, Some(("a".to_owned(), 4_000.0)));
        assert_eq!(line.interpolated, Some(6_000.0));
        assert!(score.model_error_median < 1e-4, "{}", score.model_error_median);
        assert!((score.copied_error_median.unwrap() - 1.25f64.ln()).abs() < 1e-12);
        // 5,000 is not within 15 % of 4,000 or 8,000.
        assert_eq!(analysis.ending, Ending::Missed);
        let says = "0 of 2 fitted figures are within 15 %, and 1 of 1 figures that were not used";
        assert!(analysis.reason.starts_with(says), "{}", analysis.reason);
        assert_eq!(analysis.arms[1].figure(RATE).unwrap().published_over_reference, Some(1.25));

        assert!(!analysis.reason.contains("Other inputs"), "{}", analysis.reason);
        input.inputs = vec!["a think time of 18 ms".to_owned()];
        input.own_parameters = vec![crate::analysis::OwnParameter {
            model: "adsf-hybrid".to_owned(),
            path: "hdd.used_share".to_owned(),
            values: vec!["0.45".to_owned(), "0.6".to_owned()],
        }];
        let says = " Other inputs: a think time of 18 ms. Changed from the shipped model adsf-hybrid: \
            hdd.used_share is 0.45 and 0.6.";
        assert!(analyse(&input).reason.ends_with(says), "{}", analyse(&input).reason);

        input.given = vec![given("a", 4_600.0, Role::Input), given("b", 5_500.0, Role::Input)];
        let analysis = analyse(&input);
        assert_eq!((analysis.ending, analysis.score), (Ending::Fitted, None));
        input.arms[0].planned = 2;
        assert_eq!(analyse(&input).ending, Ending::Incomplete);
        input.arms[0].planned = 1;
        input.arms[0].expects = Some(plimsoll_judge::VerdictKind::Invalid);
        assert_eq!(analyse(&input).ending, Ending::NotCaught, "a hero that no rule caught");
    }
}
