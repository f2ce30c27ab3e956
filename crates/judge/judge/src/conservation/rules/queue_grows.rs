//! Checks whether the queue grows during the run.

use plimsoll_evidence::tool_result::{Part, Quantity, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};

/// Minimum number of points. With fewer points, chance may look like a trend.
const POINTS_MIN: usize = 20;
/// Minimum ratio of the latency in the last quarter to that in the first quarter.
const GROWTH_MIN: f64 = 2.0;
/// Minimum rank correlation of latency with time.
const TREND_MIN: f64 = 0.8;

pub const RULE: Rule = Rule {
    id: "queue-grows",
    asks: "did the waiting time of operations grow during the run?",
    explains: "If operations arrive faster than they complete, the queue and all latencies grow \
     during the whole run. The mean latency is then half of the last latency. A run of twice the \
     length would have twice the mean latency. The rule fails if latency and time have a rank \
     correlation of 0.8 or more (C. Spearman, 1904) and the latency in the last quarter of the run \
     is at least twice the latency in the first quarter. This cannot happen in a closed loop with \
     a fixed number of operations in flight.",
    needs: "latencies in chronological order, from a load that is not a closed loop",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        let closed = part.setting.outstanding.as_ref().is_some_and(|outstanding| outstanding.kept);
        let latencies = part
            .series
            .iter()
            .filter(|s| s.quantity == Quantity::LatencyNs && s.points.len() >= POINTS_MIN);
        for series in latencies.filter(|_| !closed) {
            outcome.check(finding(part, series));
        }
    }
    outcome
}

fn finding(part: &Part, series: &Series) -> Option<Finding> {
    // Some tools print a latency of 0 for an interval in which no operation completed.
    let values = series.points.iter().map(|point| point.value).filter(|value| *value > 0.0);
    let values: Vec<f64> = values.collect();
    if values.len() < POINTS_MIN {
        return None;
    }
    let quarter = values.len() / 4;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (early, late) = (mean(&values[..quarter]), mean(&values[values.len() - quarter..]));
    let trend = rank_correlation(&values);
    if late < early * GROWTH_MIN || trend < TREND_MIN {
        return None;
    }
    let whose = if part.name.is_empty() { String::new() } else { format!(" of {}", part.name) };
    let says = format!(
        "the {}{whose} grew from {} in the first quarter of the run to {} in the last (rank \
         correlation with time {}): the queue kept growing, so the mean and percentiles depend on \
         the length of the run",
        series.quantity.word(),
        format::time(early),
        format::time(late),
        format::number(trend)
    );
    Some(
        Finding::new(Severity::Doubtful, says)
            .with_fields([&series.field])
            .with_request("a run with a load that the system sustains"),
    )
}

/// Returns Spearman's rank correlation of the values with their position in time. Equal values have
/// the mean of their ranks. Returns 0 if all values are equal.
fn rank_correlation(values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut products, mut squares, mut times, mut start) = (0.0, 0.0, 0.0, 0);
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = start as f64 + (equal.len() as f64 - 1.0) / 2.0 - middle;
        start += equal.len();
        squares += rank * rank * equal.len() as f64;
        for index in equal {
            let time = *index as f64 - middle;
            products += rank * time;
            times += time * time;
        }
    }
    if squares > 0.0 { products / (squares * times).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Outstanding, Point, Stage};

    use super::*;

    fn outcome(value: fn(usize) -> f64, kept: bool) -> RuleResult {
        let point = |i: usize| Point { at_s: i as f64, value: value(i) };
        let series = Series {
            quantity: Quantity::LatencyNs,
            kind: Kind::All,
            stage: Stage::Request,
            field: "end_to_end_latencies".into(),
            interval_s: None,
            points: (0..100).map(point).collect(),
            partial: false,
            understates: false,
        };
        let mut part = Part { series: vec![series], ..Part::default() };
        part.setting.outstanding = Some(Outstanding { most: Figure::exact(8.0, "depth"), kept });
        check(&ToolResult { parts: vec![part], ..ToolResult::default() }, &DeclaredFacts::default())
    }

    #[test]
    fn a_queue_that_grows_is_seen_in_its_waiting_times() {
        assert_eq!(outcome(|i| 1e6 * (i as f64 + 1.0), false).findings.len(), 1);
        assert_eq!(outcome(|i| 1e6 * (50.0 + (i % 7) as f64), false).findings.len(), 0);
        assert_eq!(outcome(|i| 1e6 * (50.0 + i as f64 / 10.0), false).findings.len(), 0);
        assert_eq!(outcome(|i| 1e6 * (i as f64 + 1.0), true).checked, 0);
    }

    #[test]
    fn intervals_without_operations_and_equal_latencies_are_no_trend() {
        assert!(outcome(|_| 0.0, false).findings.is_empty());
        assert!(
            outcome(|i| if i < 60 { 0.0 } else { 1e6 * (i % 5) as f64 }, false).findings.is_empty()
        );
        assert!(
            outcome(|i| if i % 10 < 9 { 1e6 } else { 1e6 * i as f64 }, false).findings.is_empty()
        );
        assert!((rank_correlation(&[1.0, 1.0, 2.0, 2.0]) - 0.894_427).abs() < 1e-6);
        assert_eq!(rank_correlation(&[3.0; 5]), 0.0);
    }
}
