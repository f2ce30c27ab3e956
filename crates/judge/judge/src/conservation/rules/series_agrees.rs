//! Checks that the mean of the logged intervals agrees with the printed mean.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Figure, Operation, Part, Quantity, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, usable, window};

/// Allowed relative difference between the mean of the intervals and the printed mean. They differ
/// because the first and last interval may be incomplete.
const MEAN_SLACK: f64 = 0.10;
/// Minimum share of the run that the intervals must cover.
const COVERED_MIN: f64 = 0.9;
const INTERVALS_MIN: usize = 5;

pub const RULE: Rule = Rule {
    id: "series-agrees",
    asks: "is the mean of the intervals equal to the printed mean?",
    explains: "The rate of a run is the mean rate of its intervals. If the printed rate is higher \
     than the rate of every interval, it was never reached. If it differs from their mean by more \
     than 10 %, it belongs to a different run or to other operations, or was scaled. If the tool's \
     log may understate the rate, the rule fails only if the printed figure is lower than the log.",
    needs: "a rate or bandwidth, and its value in intervals that add up to nine tenths of the run",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        for operation in &part.operations {
            for (quantity, figures) in [
                (Quantity::BandwidthPerS, &operation.bandwidth_per_s),
                (Quantity::RatePerS, &operation.rate_per_s),
            ] {
                if let Some(stated) = first(figures)
                    && let Some(intervals) = intervals(part, operation, quantity)
                {
                    outcome.check(compare_with_intervals(stated, &intervals, quantity));
                }
            }
        }
    }
    outcome
}

struct Intervals {
    values: Vec<f64>,
    understates: bool,
    field: String,
}

/// Returns the values of the intervals. If a part has several logs, they are summed.
fn intervals(part: &Part, operation: &Operation, quantity: Quantity) -> Option<Intervals> {
    let window_s = window(part, operation).filter(|w| usable(w))?.value / 1e9;
    let alike = |series: &&Series| {
        let of = series.quantity == quantity && series.kind == operation.kind;
        of && series.interval_s.is_some() && !series.partial
    };
    let logs: Vec<&Series> = part.series.iter().filter(alike).collect();
    let interval_s = logs.iter().filter_map(|log| log.interval_s).fold(0.0, f64::max);
    if interval_s <= 0.0 {
        return None;
    }
    let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
    for point in logs.iter().flat_map(|log| &log.points) {
        let slot = (point.at_s / interval_s).round() as i64;
        *sums.entry(slot).or_default() += point.value;
    }
    let covered = sums.len() as f64 * interval_s >= window_s * COVERED_MIN;
    let enough = sums.len() >= INTERVALS_MIN;
    (covered && enough).then(|| Intervals {
        values: sums.into_values().collect(),
        understates: logs.iter().any(|log| log.understates),
        field: logs.first().map(|log| log.field.clone()).unwrap_or_default(),
    })
}

fn compare_with_intervals(
    stated: &Figure,
    intervals: &Intervals,
    quantity: Quantity,
) -> Option<Finding> {
    let count = intervals.values.len() as f64;
    let mean = intervals.values.iter().sum::<f64>() / count;
    let most = intervals.values.iter().copied().fold(0.0, f64::max);
    let format_value = match quantity {
        Quantity::BandwidthPerS => format::bytes_per_s,
        _ => super::per_s as fn(f64) -> String,
    };
    let fields = [stated.field.clone(), intervals.field.clone()];
    let word = quantity.word();
    // If the log may understate the rate, it does not contradict a higher figure.
    if intervals.understates && stated.value >= mean {
        return None;
    }
    if stated.least > most * (1.0 + MEAN_SLACK) {
        let says = format!(
            "the stated {word} is {}, but the highest of {} intervals is only {} (their mean is \
             {})",
            format_value(stated.value),
            format::number(count),
            format_value(most),
            format_value(mean)
        );
        return Some(
            Finding::new(Severity::Impossible, says)
                .with_fields(fields)
                .with_request("the log of this run"),
        );
    }
    let off = (stated.value - mean).abs() / mean.max(f64::MIN_POSITIVE);
    (off > MEAN_SLACK).then(|| {
        let says = format!(
            "the stated {word} is {}, but the mean of {} intervals is {}, a difference of {}",
            format_value(stated.value),
            format::number(count),
            format_value(mean),
            format::percent(off)
        );
        Finding::new(Severity::Doubtful, says)
            .with_fields(fields)
            .with_request("the log of this run")
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Point, Stage};

    use super::*;

    fn severity(stated: f64, values: &[f64]) -> Option<Severity> {
        let points = values.iter().enumerate();
        let points = points.map(|(i, v)| Point { at_s: i as f64 + 1.0, value: *v }).collect();
        let part = Part {
            window_ns: Some(Figure::exact(10e9, "runtime")),
            operations: vec![Operation {
                rate_per_s: vec![Figure::exact(stated, "iops")],
                ..Operation::of(Kind::Read)
            }],
            series: vec![Series {
                quantity: Quantity::RatePerS,
                kind: Kind::Read,
                stage: Stage::Total,
                field: "iops.log".into(),
                interval_s: Some(1.0),
                points,
                partial: false,
                understates: false,
            }],
            ..Part::default()
        };
        let outcome = check(
            &ToolResult { parts: vec![part], ..ToolResult::default() },
            &DeclaredFacts::default(),
        );
        assert_eq!(outcome.checked, usize::from(values.len() >= 9));
        outcome.findings.first().map(|finding| finding.severity)
    }

    #[test]
    fn a_mean_is_made_of_its_intervals() {
        let values = [90.0, 100.0, 110.0, 100.0, 100.0, 95.0, 105.0, 100.0, 100.0, 100.0];
        assert_eq!(severity(100.0, &values), None);
        assert_eq!(severity(112.0, &values), Some(Severity::Doubtful));
        assert_eq!(severity(200.0, &values), Some(Severity::Impossible));
        assert_eq!(severity(200.0, &values[..5]), None, "half a log says nothing of the whole");
    }
}
