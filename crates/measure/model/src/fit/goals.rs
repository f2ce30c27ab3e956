//! Goals of a fit. Compares each goal with the result, and names the rows that cause a missed goal.

use super::search::{RowScore, Scores};
use crate::run::Pattern;

/// Rows to which a goal applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// Rows to which the model was fitted.
    Fitted,
    /// Rows of the table that the model predicts.
    Predicted,
}

/// Column to which a goal applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The rate in operations per second.
    Ops,
    /// Mean latency.
    Latency,
    /// 99th percentile of the latency, if the table has this column.
    LatencyP99,
}

/// Statistic of the errors over the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Median of the absolute relative errors.
    Median,
    /// 90th percentile of the absolute relative errors.
    P90,
    /// Median error of the model, divided by the median error of predictions that copy rows of the
    /// fitted table.
    OfCopying,
}

/// A goal: a maximum error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    pub of: RowSet,
    /// The column whose errors the goal limits.
    pub figure: Figure,
    /// The statistic of the errors that the goal limits.
    pub measure: Measure,
    /// Largest value with which the goal is reached. The value 0.25 is 25 %.
    pub limit: f64,
}

impl Goal {
    /// This project's goals for the model `zfs-flash`. The model is fitted to one published layout,
    /// and predicts another layout. These goals are the default for every fit.
    pub const DEFAULTS: [Self; 9] = [
        Self::new(RowSet::Fitted, Figure::Ops, Measure::Median, 0.05),
        Self::new(RowSet::Fitted, Figure::Latency, Measure::Median, 0.08),
        Self::new(RowSet::Predicted, Figure::Ops, Measure::Median, 0.10),
        Self::new(RowSet::Predicted, Figure::Latency, Measure::Median, 0.15),
        Self::new(RowSet::Predicted, Figure::Ops, Measure::P90, 0.25),
        Self::new(RowSet::Predicted, Figure::Latency, Measure::P90, 0.25),
        Self::new(RowSet::Predicted, Figure::Ops, Measure::OfCopying, 0.5),
        Self::new(RowSet::Predicted, Figure::Latency, Measure::OfCopying, 0.5),
        Self::new(RowSet::Predicted, Figure::LatencyP99, Measure::Median, 0.25),
    ];

    const fn new(of: RowSet, figure: Figure, measure: Measure, limit: f64) -> Self {
        Self { of, figure, measure, limit }
    }

    /// Name of the goal in options and JSON, such as `predicted.latency.p90`.
    pub fn name(&self) -> String {
        let of = match self.of {
            RowSet::Fitted => "fitted",
            RowSet::Predicted => "predicted",
        };
        let figure = match self.figure {
            Figure::Ops => "ops",
            Figure::Latency => "latency",
            Figure::LatencyP99 => "latency_p99",
        };
        let measure = match self.measure {
            Measure::Median => "median",
            Measure::P90 => "p90",
            Measure::OfCopying => "of_copying",
        };
        format!("{of}.{figure}.{measure}")
    }
}

/// Rows of one table, which are compared with a goal. The table is either the fitted table or the
/// predicted table.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub rows: &'a [RowScore],
    /// Error statistics over all rows.
    pub scores: &'a Scores,
    /// Errors of predictions that copy rows of the fitted table and do not use the model.
    pub copied: Option<&'a Scores>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub goal: Goal,
    pub reached: f64,
    /// For [`Measure::OfCopying`]: the error of the predictions that copy rows.
    pub copying: Option<f64>,
    /// Cause of the missed goal; `None` if the goal is reached.
    pub gap: Option<Gap>,
}

/// Distance between the result and a goal that was missed, and the rows that cause the distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Difference between the reached value and the limit, in the unit of the goal.
    pub over: f64,
    /// Limit for the error of a single row. `rows` lists the rows whose error exceeds it.
    pub row_limit: f64,
    /// Index and signed error of each row whose error exceeds `row_limit`, the largest error first.
    pub rows: Vec<(usize, f64)>,
    /// Groups of rows whose errors have the same sign. The group with the largest error is first.
    pub groups: Vec<Group>,
}

/// Rows that share a property, and whose errors have the same sign.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The common property, such as `16 KiB` or `25 % read`.
    pub name: String,
    pub rows: usize,
    /// Number of rows of the group whose error has the same sign as the median.
    pub one_side: usize,
    /// Median of the signed errors of all rows of the group.
    pub error_median: f64,
}

/// Compares every goal with the result. Skips goals for which there are no rows.
pub fn hold(goals: &[Goal], fitted: Side<'_>, predicted: Option<Side<'_>>) -> Vec<Outcome> {
    let of = |goal: &Goal| match goal.of {
        RowSet::Fitted => Some(fitted),
        RowSet::Predicted => predicted,
    };
    goals.iter().filter_map(|goal| outcome(goal, of(goal)?)).collect()
}

fn outcome(goal: &Goal, side: Side<'_>) -> Option<Outcome> {
    let pick = |scores: &Scores| match (goal.figure, goal.measure) {
        (Figure::Ops, Measure::P90) => Some(scores.ops_p90),
        (Figure::Latency, Measure::P90) => Some(scores.latency_p90),
        (Figure::LatencyP99, Measure::P90) => scores.latency_p99_p90,
        (Figure::Ops, _) => Some(scores.ops_median),
        (Figure::Latency, _) => Some(scores.latency_median),
        (Figure::LatencyP99, _) => scores.latency_p99_median,
    };
    let mut reached = pick(side.scores)?;
    let mut row_limit = goal.limit;
    let mut copying = None;
    if goal.measure == Measure::OfCopying {
        let copied = side.copied.and_then(pick).filter(|error| *error > 0.0)?;
        reached /= copied;
        row_limit *= copied;
        copying = Some(copied);
    }
    // An error that is NaN satisfies no goal.
    let met = reached <= goal.limit;
    let gap = (!met).then(|| gap(goal, side.rows, reached, row_limit));
    Some(Outcome { goal: *goal, reached, copying, gap })
}

fn gap(goal: &Goal, rows: &[RowScore], reached: f64, row_limit: f64) -> Gap {
    let error = |row: &RowScore| match goal.figure {
        Figure::Ops => Some(row.ops_error),
        Figure::Latency => Some(row.latency_error),
        Figure::LatencyP99 => row.latency_p99_error,
    };
    let errors: Vec<Option<f64>> = rows.iter().map(error).collect();
    let known = errors.iter().enumerate().filter_map(|(at, error)| Some((at, (*error)?)));
    let mut large: Vec<(usize, f64)> = known.filter(|(_, e)| e.abs() > row_limit).collect();
    large.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    Gap {
        over: reached - goal.limit,
        row_limit,
        rows: large,
        groups: groups(rows, &errors, 0.5 * row_limit),
    }
}

/// Returns groups of at least three rows. In a group, at least three quarters of the errors have
/// the same sign, and the median error exceeds `least`.
fn groups(rows: &[RowScore], errors: &[Option<f64>], least: f64) -> Vec<Group> {
    let mut names: Vec<(String, Vec<f64>)> = Vec::new();
    for (row, error) in rows.iter().zip(errors) {
        let (row, Some(error)) = (&row.row, error) else { continue };
        let mut of = vec![
            row.io_bytes.map(|bytes| format!("{} KiB", bytes as f64 / 1024.0)),
            row.read_share.map(|share| format!("{:.0} % read", 100.0 * share)),
            row.outstanding().map(|outstanding| format!("{outstanding} outstanding")),
        ];
        of.push((row.pattern == Pattern::Sequential).then(|| "sequential".to_owned()));
        for name in of.into_iter().flatten() {
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, list)) => list.push(*error),
                None => names.push((name, vec![*error])),
            }
        }
    }
    let group = |(name, mut errors): (String, Vec<f64>)| {
        errors.sort_by(f64::total_cmp);
        let n = errors.len();
        let median = 0.5 * (errors[n / 2] + errors[(n - 1) / 2]);
        let one_side = errors.iter().filter(|e| **e * median > 0.0).count();
        let reported = n >= 3 && 4 * one_side >= 3 * n && median.abs() > least;
        reported.then_some(Group { name, rows: n, one_side, error_median: median })
    };
    let mut groups: Vec<Group> = names.into_iter().filter_map(group).collect();
    groups.sort_by(|a, b| b.error_median.abs().total_cmp(&a.error_median.abs()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Point, Row, score};

    /// Returns rows of reads with a measured latency of 1 ms. Each element of `errors` consists of
    /// an I/O size in KiB and the relative error of the modelled latency.
    fn rows(errors: &[(u64, f64)]) -> Vec<RowScore> {
        let row = |(io_kib, error): &(u64, f64)| RowScore {
            row: Row {
                clients: None,
                line: 1,
                io_bytes: Some(io_kib * 1024),
                pattern: Pattern::Random,
                read_share: Some(1.0),
                durable: false,
                depth: None,
                bandwidth_mb_per_s: None,
                ops_per_s: 1000.0,
                latency_ms: 1.0,
                latency_p99_ms: None,
                read_ops_per_s: None,
                write_ops_per_s: None,
            },
            modelled: Point { ops_per_s: 1000.0, latency_ms: 1.0 + error, latency_p99_ms: None },
            ops_error: 0.0,
            latency_error: *error,
            latency_p99_error: None,
        };
        errors.iter().map(row).collect()
    }

    #[test]
    fn a_missed_goal_names_rows_and_the_group_that_errs_to_one_side() {
        let good = rows(&[(4, 0.01)]);
        let bad = rows(&[
            (4, 0.02),
            (4, -0.02),
            (4, 0.28),
            (16, -0.3),
            (16, -0.2),
            (16, -0.4),
            (64, 0.0),
        ]);
        let (fitted, scores) = (score(&good), score(&bad));
        let copied = Scores { ops_median: 0.3, latency_median: 0.2, ..Scores::default() };
        let outcomes = hold(
            &Goal::DEFAULTS,
            Side { rows: &good, scores: &fitted, copied: None },
            Some(Side { rows: &bad, scores: &scores, copied: Some(&copied) }),
        );
        assert_eq!(outcomes.len(), 8);
        let missed: Vec<&Outcome> = outcomes.iter().filter(|o| o.gap.is_some()).collect();
        let names: Vec<String> = missed.iter().map(|o| o.goal.name()).collect();
        let expected =
            ["predicted.latency.median", "predicted.latency.p90", "predicted.latency.of_copying"];
        assert_eq!(names, expected);
        let gap = missed[1].gap.as_ref().unwrap();
        assert_eq!(gap.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [5, 3, 2]);
        assert!((gap.over - (scores.latency_p90 - 0.25)).abs() < 1e-12);
        // At 4 KiB, two of the three latencies are correct. At 16 KiB, all latencies are too low,
        // so 16 KiB is the only group.
        assert_eq!(gap.groups.len(), 1, "{:?}", gap.groups);
        assert_eq!((gap.groups[0].name.as_str(), gap.groups[0].one_side), ("16 KiB", 3));
        assert!((gap.groups[0].error_median + 0.3).abs() < 1e-12);
        assert_eq!(missed[2].copying, Some(0.2));
        assert!((missed[2].reached - 1.0).abs() < 1e-9);
        assert!((missed[2].gap.as_ref().unwrap().row_limit - 0.1).abs() < 1e-12);
    }

    #[test]
    fn goals_of_what_is_not_there_are_left_out() {
        let good = rows(&[(4, 0.01)]);
        let scores = score(&good);
        let side = Side { rows: &good, scores: &scores, copied: None };
        assert_eq!(hold(&Goal::DEFAULTS, side, None).len(), 2);
        // If there is no row to copy, the goal of being better than a copy does not apply.
        assert_eq!(hold(&Goal::DEFAULTS, side, Some(side)).len(), 6);
    }
}
