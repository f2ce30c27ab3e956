//! Predictions against what needs no model: copying the nearest row that was known, and drawing a line
//! between the rows on both sides of it. A model that does no better than these has explained nothing.
//!
//! Errors are |ln(predicted / published)|, so that half and double are alike; medians over the figures.

use serde::{Deserialize, Serialize};

use super::arm::ArmStory;
use super::{Given, Role, Told, points};

/// One prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreLine {
    /// The arm.
    pub arm: String,
    /// The figure.
    pub figure: String,
    /// What was published.
    pub published: f64,
    /// What came out.
    pub predicted: f64,
    /// The nearest row that was known, and its arm; `None`: no other row has the figure.
    pub copied: Option<(String, f64)>,
    /// Between the rows on both sides; `None` where one side has none.
    pub interpolated: Option<f64>,
}

impl ScoreLine {
    /// Relative error of a value: of its logarithm, as a share.
    pub fn error_of(&self, value: f64) -> f64 {
        libm::fabs(libm::log(value / self.published))
    }
}

/// All predictions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Each prediction.
    pub lines: Vec<ScoreLine>,
    /// Median error of the model over the lines.
    pub model_error_median: f64,
    /// Median error of copying, over the lines that have a row to copy.
    pub copied_error_median: Option<f64>,
    /// Median error of interpolation, over the lines that have both sides.
    pub interpolated_error_median: Option<f64>,
    /// How many published figures were inputs, and are not in the score.
    pub inputs: usize,
}

pub(super) fn score(told: &Told<'_>, arms: &[ArmStory]) -> Option<Score> {
    let place = |name: &str| arms.iter().position(|arm| arm.name == name);
    let mut lines = Vec::new();
    for given in told.given.iter().filter(|given| given.role != Role::Input && given.value > 0.0) {
        let Some(at) = place(&given.arm) else { continue };
        let mean = arms[at].figure(&given.figure).and_then(|figure| figure.mean);
        let Some(predicted) = mean.filter(|mean| *mean > 0.0) else { continue };
        let known: Vec<(usize, &Given)> = told
            .given
            .iter()
            .filter(|other| other.figure == given.figure && other.arm != given.arm)
            .filter(|other| other.role.was_known() && other.value > 0.0)
            .filter_map(|other| Some((place(&other.arm)?, other)))
            .collect();
        lines.push(ScoreLine {
            arm: given.arm.clone(),
            figure: given.figure.clone(),
            published: given.value,
            predicted,
            copied: nearest(arms, at, &known),
            interpolated: match &arms[at].point {
                Some(_) if !arms[at].group.is_empty() => {
                    points::interpolated(arms, &arms[at], &given.figure)
                }
                _ => between(at, &known),
            },
        });
    }
    if lines.is_empty() {
        return None;
    }
    let over = |value: &dyn Fn(&ScoreLine) -> Option<f64>| {
        median(lines.iter().filter_map(|line| Some(line.error_of(value(line)?))).collect())
    };
    Some(Score {
        model_error_median: over(&|line| Some(line.predicted)).unwrap_or(0.0),
        copied_error_median: over(&|line| line.copied.as_ref().map(|copied| copied.1)),
        interpolated_error_median: over(&|line| line.interpolated),
        inputs: told.given.iter().filter(|given| given.role == Role::Input).count(),
        lines,
    })
}

/// The row to copy: of another table the row of the same label, of this one the nearest arm.
fn nearest(arms: &[ArmStory], at: usize, known: &[(usize, &Given)]) -> Option<(String, f64)> {
    let label = |arm: &ArmStory| arm.name.strip_prefix(&arm.group).unwrap_or(&arm.name).to_owned();
    let (own, group) = (label(&arms[at]), &arms[at].group);
    let twin = known.iter().find(|(other, _)| {
        !group.is_empty() && arms[*other].group != *group && label(&arms[*other]) == own
    });
    let closest = known.iter().min_by_key(|(other, _)| other.abs_diff(at));
    twin.or(closest).map(|(_, given)| (given.arm.clone(), given.value))
}

/// On the line between the nearest known rows on both sides, by their places in the order of the arms.
fn between(at: usize, known: &[(usize, &Given)]) -> Option<f64> {
    let before = known.iter().filter(|(other, _)| *other < at).max_by_key(|(other, _)| *other)?;
    let after = known.iter().filter(|(other, _)| *other > at).min_by_key(|(other, _)| *other)?;
    let share = (at - before.0) as f64 / (after.0 - before.0) as f64;
    Some(before.1.value + share * (after.1.value - before.1.value))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some(0.5 * (values[half - 1] + values[half])),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arm, Ending, Role, tell};
    use super::*;
    use crate::judge;
    use crate::rules::made_up;

    const RATE: &str = "achieved_iops_per_s";

    fn given(arm: &str, value: f64, role: Role) -> Given {
        let (arm, figure) = (arm.to_owned(), RATE.to_owned());
        Given { arm, figure, value, role, source: String::new() }
    }

    #[test]
    fn predictions_are_held_against_a_copied_row_and_a_line_between_rows() {
        let bundle = made_up::reads();
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
        // Each server has half of 10,000 I/Os a second.
        let mut told = Told {
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
        let story = tell(&told);
        let score = story.score.unwrap();
        assert_eq!((score.lines.len(), score.inputs), (1, 2));
        let line = &score.lines[0];
        assert_eq!((line.published, line.predicted), (5_000.0, 5_000.0));
        assert_eq!(line.copied, Some(("a".to_owned(), 4_000.0)));
        assert_eq!(line.interpolated, Some(6_000.0));
        assert_eq!(score.model_error_median, 0.0);
        assert!((score.copied_error_median.unwrap() - 1.25f64.ln()).abs() < 1e-12);
        // 5,000 is not within 15 % of 4,000 or 8,000.
        assert_eq!(story.ending, Ending::Missed);
        let says = "0 of 2 figures that were inputs are within 15 %, 1 of 1 that were no input are";
        assert!(story.reason.starts_with(says), "{}", story.reason);
        assert_eq!(story.arms[1].figure(RATE).unwrap().published_over_reference, Some(1.25));

        assert!(!story.reason.contains("Inputs besides"), "{}", story.reason);
        told.inputs = vec!["a think time of 18 ms".to_owned()];
        told.own_parameters = vec![crate::story::OwnParameter {
            model: "adsf-hybrid".to_owned(),
            path: "hdd.used_share".to_owned(),
            values: vec!["0.45".to_owned(), "0.6".to_owned()],
        }];
        let says = " Inputs besides: a think time of 18 ms. Not adsf-hybrid as it is shipped: hdd.used_share is \
            0.45 and 0.6.";
        assert!(tell(&told).reason.ends_with(says), "{}", tell(&told).reason);

        told.given = vec![given("a", 4_600.0, Role::Input), given("b", 5_500.0, Role::Input)];
        let story = tell(&told);
        assert_eq!((story.ending, story.score), (Ending::Fitted, None));
        told.arms[0].planned = 2;
        assert_eq!(tell(&told).ending, Ending::Incomplete);
        told.arms[0].planned = 1;
        told.arms[0].expects = Some(crate::VerdictKind::Invalid);
        assert_eq!(tell(&told).ending, Ending::CameThrough, "a hero that no rule caught");
    }
}
