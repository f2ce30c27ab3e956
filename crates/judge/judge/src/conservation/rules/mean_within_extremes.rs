//! Checks that mean, extremes, deviation and percentiles can describe the same latencies.

use plimsoll_evidence::tool_result::{Figure, Latency, Operation, Part, Stage, ToolResult};

use super::super::equation::{Equation, failures};
use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{first, latency_shares, usable, whose};

/// Minimum number of operations for the bounds that follow from percentiles. Tools define ranks
/// differently, so each percentile may be off by one rank.
const COUNT_MIN: f64 = 20.0;
/// Tolerance of the bounds of a mean. Tools compute the mean from rounded bins, so it may exceed
/// its bounds by this share.
const SLACK: f64 = 0.005;
/// Tolerance when the mean latencies of the stages are added. In some engines, the end of a stage
/// and the start of the next stage have slightly different timestamps.
const STAGES_SLACK: f64 = 0.02;

pub const RULE: Rule = Rule {
    id: "mean-within-extremes",
    asks: "can the mean, extremes, deviation and percentiles describe the same latencies?",
    explains: "A mean is between the minimum and the maximum. If the result states the sum of the \
               latencies, the mean is this sum divided by their number. If n values are not negative, none of \
               them is greater than n times their mean. A share 1 - q of the values is at least \
               p(q), so the mean is at least (1 - q) × p(q) (A. Markov). All percentiles together \
               yield a lower and an upper bound of the mean. The deviation limits the distance of a \
               percentile from the mean (F. Cantelli, 1928: σ × √(q / (1 - q))). The deviation \
               itself is at most √((max - mean) × (mean - min)) (R. Bhatia, C. Davis, 2000). The \
               mean total latency is the sum of the means of its stages. fio also prints which \
               share of the completion latencies is in each of several fixed ranges. The minimum \
               must be in the lowest range with operations, the maximum in the highest, and the \
               shares bound the mean. Percentiles may be off by the width of their bins and by one \
               rank.",
    needs: "two or more of mean, minimum, maximum, deviation and percentiles of one latency",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        for latency in &operation.latencies {
            let stated = LatencyFigures::of(latency, operation);
            let whose = format!("{}{}", whose(part, operation), stage(latency.stage));
            for bound in bounds(&stated) {
                outcome.checked += 1;
                outcome.findings.extend(bound.finding(&whose));
            }
            if let Some(equation) = quotient(latency) {
                outcome.checked += 1;
                outcome.findings.extend(failures(&[equation]).into_iter().map(|mut finding| {
                    finding.says.insert_str(0, &whose);
                    finding.with_request("the histogram behind these figures")
                }));
            }
        }
        stages(&mut outcome, part, operation);
    }
    reported.parts.iter().for_each(|part| latency_shares::check(&mut outcome, part));
    outcome
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Submission => "submission latency: ",
        Stage::Completion => "completion latency: ",
        Stage::Request => "request latency: ",
        Stage::Total | Stage::Unstated => "",
    }
}

/// Figures that the result states for one latency.
struct LatencyFigures<'r> {
    min: Option<&'r Figure>,
    mean: Option<&'r Figure>,
    max: Option<&'r Figure>,
    stddev: Option<&'r Figure>,
    /// Percentiles in the order of their quantiles.
    percentiles: Vec<(f64, &'r Figure)>,
    count: Option<f64>,
}

impl<'r> LatencyFigures<'r> {
    fn of(latency: &'r Latency, operation: &Operation) -> Self {
        let figure = |figure: &'r Option<Figure>| figure.as_ref().filter(|figure| usable(figure));
        let inside = |q: f64| q > 0.0 && q < 1.0;
        let mut percentiles: Vec<(f64, &Figure)> = latency
            .percentiles
            .iter()
            .filter(|p| usable(&p.ns) && inside(p.quantile))
            .map(|p| (p.quantile, &p.ns))
            .collect();
        percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = latency.count.as_ref().or_else(|| {
            // If the figure applies to all operations, there are as many latencies as operations.
            first(&operation.count).filter(|_| !latency.sampled)
        });
        Self {
            min: figure(&latency.min_ns),
            mean: figure(&latency.mean_ns),
            max: figure(&latency.max_ns),
            stddev: figure(&latency.stddev_ns),
            percentiles,
            count: count.map(|count| count.value).filter(|count| *count >= 1.0),
        }
    }

    /// Returns the largest change of a mean's bound if a percentile is off by one rank.
    fn rank_ns(&self) -> Option<f64> {
        let count = self.count.filter(|count| *count >= COUNT_MIN)?;
        let top = self.max.or(self.percentiles.last().map(|(_, figure)| *figure))?;
        Some(top.most / count * (self.percentiles.len() + 1) as f64)
    }
}

/// Inequality between two figures: `less` must not exceed `more`.
struct Bound<'r> {
    less_says: String,
    less: Span,
    more_says: String,
    more: Span,
    slack_ns: f64,
    figures: Vec<&'r Figure>,
}

impl Bound<'_> {
    fn finding(&self, whose: &str) -> Option<Finding> {
        let slack = self.slack_ns + self.more.most * 1e-9 + 1e-3;
        if self.less.least <= self.more.most + slack {
            return None;
        }
        let [less, more] = format::distinct(format::time, [self.less.value, self.more.value]);
        let says = format!(
            "{whose}{} is {less}, which is more than {} {more}",
            self.less_says, self.more_says
        );
        Some(
            Finding::new(Severity::Impossible, says)
                .with_fields(self.figures.iter().map(|figure| figure.field.clone()))
                .with_request("the histogram behind these figures"),
        )
    }
}

/// Returns the equation between the mean and the stated sum and number of the latencies.
fn quotient(latency: &Latency) -> Option<Equation<'_>> {
    let figure = |figure| Option::as_ref(figure).filter(|figure| usable(figure));
    let (sum, count) = (figure(&latency.sum_ns)?, figure(&latency.count)?);
    let mean = figure(&latency.mean_ns)?;
    Some(Equation {
        left_says: format!(
            "{} / {} operations",
            format::time(sum.value),
            format::number(count.value)
        ),
        left: Span::from(sum).over(count.into())?,
        right_says: "the mean".into(),
        right: mean.into(),
        format_value: format::time,
        figures: vec![mean, sum, count],
    })
}

fn bounds<'r>(stated: &LatencyFigures<'r>) -> Vec<Bound<'r>> {
    let mut bounds = Vec::new();
    let mut at_most = |less: (&str, &'r Figure), more: (&str, &'r Figure)| {
        bounds.push(Bound {
            less_says: less.0.into(),
            less: less.1.into(),
            more_says: more.0.into(),
            more: more.1.into(),
            slack_ns: 0.0,
            figures: vec![less.1, more.1],
        });
    };
    let (min, mean, max) = (stated.min, stated.mean, stated.max);
    for (less, more) in [
        (min.map(|f| ("the minimum", f)), mean.map(|f| ("the mean", f))),
        (mean.map(|f| ("the mean", f)), max.map(|f| ("the maximum", f))),
        (min.map(|f| ("the minimum", f)), max.map(|f| ("the maximum", f))),
    ] {
        if let Some((less, more)) = less.zip(more) {
            at_most(less, more);
        }
    }
    for (quantile, figure) in &stated.percentiles {
        let word = format::quantile(*quantile);
        if let Some(min) = min {
            at_most(("the minimum", min), (&word, figure));
        }
        if let Some(max) = max {
            at_most((&word, figure), ("the maximum", max));
        }
    }
    bounds.extend(by_count(stated));
    bounds.extend(by_percentiles(stated));
    bounds.extend(by_deviation(stated));
    bounds
}

fn by_count<'r>(stated: &LatencyFigures<'r>) -> Option<Bound<'r>> {
    let (mean, max, count) = (stated.mean?, stated.max?, stated.count?);
    Some(Bound {
        less_says: "the maximum".into(),
        less: max.into(),
        more_says: format!(
            "the maximum that is possible for {} latencies with a mean of {},",
            format::number(count),
            format::time(mean.value)
        ),
        more: Span::from(mean).scaled(count).widened(SLACK),
        slack_ns: 0.0,
        figures: vec![max, mean],
    })
}

/// Returns the lower and upper bound of the mean that follow from these percentiles.
fn by_percentiles<'r>(stated: &LatencyFigures<'r>) -> Vec<Bound<'r>> {
    let (Some(mean), Some(rank_ns)) = (stated.mean, stated.rank_ns()) else { return Vec::new() };
    if stated.percentiles.is_empty() {
        return Vec::new();
    }
    let all = |extra: Option<&'r Figure>| {
        let of = stated.percentiles.iter().map(|(_, figure)| *figure);
        [mean].into_iter().chain(of).chain(extra).collect::<Vec<_>>()
    };
    let zero = Span::exact(0.0);
    let mut least = zero;
    let (mut below, mut from) = (stated.min.map_or(zero, Span::from), 0.0);
    for (quantile, figure) in &stated.percentiles {
        least = least.plus(below.scaled(quantile - from));
        (below, from) = (Span::from(*figure), *quantile);
    }
    least = least.plus(below.scaled(1.0 - from));
    let mut bounds = vec![Bound {
        less_says: "the lowest mean that the percentiles allow".into(),
        less: least,
        more_says: "the mean".into(),
        more: Span::from(mean).widened(SLACK),
        slack_ns: rank_ns,
        figures: all(stated.min),
    }];
    if let Some(max) = stated.max {
        let mut most = zero;
        let mut from = 0.0;
        for (quantile, figure) in &stated.percentiles {
            most = most.plus(Span::from(*figure).scaled(quantile - from));
            from = *quantile;
        }
        most = most.plus(Span::from(max).scaled(1.0 - from));
        bounds.push(Bound {
            less_says: "the mean".into(),
            less: mean.into(),
            more_says: "the highest mean that the percentiles and the maximum allow,".into(),
            more: most.widened(SLACK),
            slack_ns: rank_ns,
            figures: all(Some(max)),
        });
    }
    bounds
}

fn by_deviation<'r>(stated: &LatencyFigures<'r>) -> Vec<Bound<'r>> {
    let (Some(mean), Some(stddev)) = (stated.mean, stated.stddev) else { return Vec::new() };
    let mut bounds = Vec::new();
    // Ratio of the standard deviation of a sample to that of the population.
    let sample = stated.count.map_or(2.0, |n| if n > 1.0 { n / (n - 1.0) } else { 2.0 }).sqrt();
    if let Some(max) = stated.max {
        // Without a minimum, the bound is that of latencies that are not negative.
        let least = stated.min.map_or(0.0, |min| min.least);
        let (above, under) = ((max.most - mean.least).max(0.0), (mean.most - least).max(0.0));
        let limit = (above * under).sqrt() * sample;
        bounds.push(Bound {
            less_says: "the deviation".into(),
            less: stddev.into(),
            more_says: "the largest deviation that the extremes and the mean allow,".into(),
            more: Span::exact(limit).widened(SLACK),
            slack_ns: 0.0,
            figures: [Some(stddev), stated.min, Some(mean), Some(max)]
                .into_iter()
                .flatten()
                .collect(),
        });
    }
    let Some(count) = stated.count.filter(|count| *count >= COUNT_MIN) else { return bounds };
    for (quantile, figure) in &stated.percentiles {
        // A percentile may be off by one rank, because tools compute percentiles differently.
        let (low, high) = (quantile - 1.0 / count, quantile + 1.0 / count);
        let word = format::quantile(*quantile);
        if low > 0.0 {
            // At least a share 1 - q of the values is equal to the percentile or above it.
            let factor = (high.min(1.0 - 1.0 / count) / (1.0 - high).max(1.0 / count)).sqrt();
            bounds.push(Bound {
                less_says: word.clone(),
                less: (*figure).into(),
                more_says: format!(
                    "the highest value of {word} that the mean and the deviation allow,"
                ),
                more: Span::from(mean).plus(Span::from(stddev).scaled(factor)).widened(SLACK),
                slack_ns: 0.0,
                figures: vec![figure, stddev, mean],
            });
        }
        if high < 1.0 && low > 0.0 {
            let factor = ((1.0 - low) / low).sqrt();
            bounds.push(Bound {
                less_says: "the mean".into(),
                less: mean.into(),
                more_says: format!("the highest mean that {word} and the deviation allow,"),
                more: Span::from(*figure).plus(Span::from(stddev).scaled(factor)).widened(SLACK),
                slack_ns: 0.0,
                figures: vec![mean, stddev, figure],
            });
        }
    }
    bounds
}

/// Checks that the total mean latency is the sum of the means of the stages. If the mean of the
/// submission is unknown, the total must not be below the mean of the completion.
fn stages(outcome: &mut RuleResult, part: &Part, operation: &Operation) {
    let of = |stage: Stage| operation.latencies.iter().find(|l| l.stage == stage);
    let count = |latency: &Latency| latency.count.as_ref().map(|count| count.value);
    let (Some(completion), Some(total)) = (of(Stage::Completion), of(Stage::Total)) else { return };
    if completion.sampled || total.sampled {
        return;
    }
    if let Some((one, other)) = completion.count.as_ref().zip(total.count.as_ref()) {
        outcome.check((one.value != other.value).then(|| {
            let says = format!(
                "{}{} completion latencies, but {} total latencies",
                whose(part, operation),
                format::number(one.value),
                format::number(other.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&one.field, &other.field])
                .with_request("the tool's own output")
        }));
    }
    if count(completion) != count(total) {
        return;
    }
    for (word, one, other) in [
        ("minimum", &completion.min_ns, &total.min_ns),
        ("maximum", &completion.max_ns, &total.max_ns),
    ] {
        let (Some(one), Some(other)) = (one, other) else { continue };
        if !usable(one) || !usable(other) {
            continue;
        }
        let exceeds = one.least > Span::from(other).widened(STAGES_SLACK).most;
        outcome.check(exceeds.then(|| {
            let says = format!(
                "{}the {word} completion time is {}, but the {word} total time is only {}",
                whose(part, operation),
                format::time(one.value),
                format::time(other.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&other.field, &one.field])
                .with_request("the tool's own output")
        }));
    }
    let mean = |latency: &'_ Latency| latency.mean_ns.clone().filter(usable);
    let (Some(b), Some(sum)) = (mean(completion), mean(total)) else { return };
    let submission = of(Stage::Submission).filter(|latency| count(latency) == count(total));
    let (fits, says) = if let Some(a) = submission.and_then(mean) {
        let added = Span::from(&a).plus((&b).into());
        let says = format!(
            "the mean times of submission ({}) and completion ({}) sum to {}, but the mean total \
             is {}",
            format::time(a.value),
            format::time(b.value),
            format::time(added.value),
            format::time(sum.value)
        );
        (added.widened(STAGES_SLACK).meets((&sum).into()), says)
    } else {
        let says = format!(
            "the mean time of completion is {}, but the mean total is only {}",
            format::time(b.value),
            format::time(sum.value)
        );
        (Span::from(&sum).widened(STAGES_SLACK).most >= b.least, says)
    };
    outcome.check((!fits).then(|| {
        Finding::new(Severity::Impossible, whose(part, operation) + &says)
            .with_fields([&sum.field, &b.field])
            .with_request("the tool's own output")
    }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::{Kind, Percentile};

    use super::*;

    fn exact(value: f64, field: &str) -> Option<Figure> {
        Some(Figure::exact(value, field))
    }

    /// 1,000 latencies: half of 100 us, 49 % of 200 us, 1 % of 1,000 us.
    fn latency() -> Latency {
        let p =
            |quantile, ns| Percentile { quantile, ns: Figure::exact(ns, format!("p{quantile}")) };
        Latency {
            count: exact(1000.0, "n"),
            min_ns: exact(100e3, "min"),
            mean_ns: exact(158e3, "mean"),
            max_ns: exact(1000e3, "max"),
            stddev_ns: exact(98.2e3, "stddev"),
            percentiles: vec![p(0.5, 100e3), p(0.9, 200e3), p(0.99, 200e3), p(0.999, 1000e3)],
            ..Latency::default()
        }
    }

    fn found(latency: Latency) -> Vec<String> {
        let operation =
            Operation { kind: Kind::Read, latencies: vec![latency], ..Operation::default() };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        let outcome =
            check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default());
        outcome.findings.into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn latencies_that_exist_are_possible() {
        assert_eq!(found(latency()), Vec::<String>::new());
    }

    #[test]
    fn each_bound_is_watched() {
        let with = |change: fn(&mut Latency)| {
            let mut changed = latency();
            change(&mut changed);
            found(changed).join("; ")
        };
        assert!(with(|l| l.mean_ns = exact(90e3, "mean")).contains("the minimum is 100 us"));
        assert!(with(|l| l.mean_ns = exact(1100e3, "mean")).contains("the mean is 1.1 ms"));
        assert!(with(|l| l.max_ns = exact(190e3, "max")).contains("p90 is 200 us"));
        // At least half are 100 us and at least a tenth are 200 us.
        assert!(
            with(|l| l.mean_ns = exact(105e3, "mean"))
                .contains("lowest mean that the percentiles allow")
        );
        assert!(with(|l| l.mean_ns = exact(170e3, "mean")).contains("percentiles and the maximum"));
        assert!(with(|l| l.stddev_ns = exact(400e3, "stddev")).contains("the deviation is 400 us"));
        let open = |l: &mut Latency| (l.min_ns, l.stddev_ns) = (None, exact(600e3, "stddev"));
        assert!(with(open).contains("the deviation is 600 us"));
        assert!(with(|l| l.stddev_ns = exact(10e3, "stddev")).contains("p99.9 is 1 ms"));
        assert!(with(|l| l.max_ns = exact(1e9, "max")).contains("1,000 latencies with a mean"));
    }

    #[test]
    fn the_mean_is_the_sum_divided_by_the_number() {
        let with = |sum: f64| found(Latency { sum_ns: exact(sum, "sum"), ..latency() });
        assert_eq!(with(158e6), Vec::<String>::new());
        let says = with(258e6).join("; ");
        assert!(
            says.contains("258 ms / 1,000 operations = 258 us, but the mean is 158 us"),
            "{says}"
        );
    }

    #[test]
    fn the_completion_is_part_of_the_total() {
        let of = |stage, min, max, count: Option<f64>| Latency {
            stage,
            count: count.and_then(|count| exact(count, "N")),
            min_ns: exact(min, "min"),
            max_ns: exact(max, "max"),
            ..Latency::default()
        };
        let n = Some(1000.0);
        for (total, checked, failures) in [
            (of(Stage::Total, 60e3, 900e3, n), 3, 0),
            (of(Stage::Total, 60e3, 400e3, n), 3, 1),
            (of(Stage::Total, 20e3, 900e3, n), 3, 1),
            (of(Stage::Total, 60e3, 400e3, Some(500.0)), 1, 1),
            (of(Stage::Total, 60e3, 400e3, None), 0, 0),
        ] {
            let latencies = vec![of(Stage::Completion, 50e3, 800e3, n), total];
            let operation = Operation { latencies, ..Operation::default() };
            let mut outcome = RuleResult::default();
            stages(&mut outcome, &Part::default(), &operation);
            assert_eq!((outcome.checked, outcome.findings.len()), (checked, failures));
        }
    }

    #[test]
    fn stages_add_up() {
        let of = |stage, mean| Latency { stage, mean_ns: exact(mean, "m"), ..Latency::default() };
        let operation = |total| Operation {
            latencies: vec![
                of(Stage::Submission, 2e3),
                of(Stage::Completion, 98e3),
                of(Stage::Total, total),
            ],
            ..Operation::default()
        };
        for (total, failures) in [(100e3, 0), (130e3, 1), (98e3, 0), (90e3, 1)] {
            let mut outcome = RuleResult::default();
            stages(&mut outcome, &Part::default(), &operation(total));
            assert_eq!((outcome.checked, outcome.findings.len()), (1, failures), "{total}");
        }
        for (total, failures) in [(98e3, 0), (130e3, 0), (90e3, 1)] {
            let mut synchronous = operation(total);
            synchronous.latencies.remove(0);
            let mut outcome = RuleResult::default();
            stages(&mut outcome, &Part::default(), &synchronous);
            assert_eq!((outcome.checked, outcome.findings.len()), (1, failures), "{total}");
        }
    }
}
