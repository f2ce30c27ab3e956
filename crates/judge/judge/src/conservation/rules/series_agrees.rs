//! Checks that the mean of the logged intervals agrees with the printed mean.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    CounterReset, Figure, Latency, Operation, Part, Quantity, Series, Stage, ToolResult,
};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, usable, window};

/// Allowed relative difference between the mean of the intervals and the printed mean. They differ
/// because the first and last interval may be incomplete.
const MEAN_SLACK: f64 = 0.10;
/// Maximum ratio of the printed mean to the mean of a log that may understate it. fio divides the
/// amount of an interval by a longer time, if it takes a sample late.
const UNDERSTATED_MAX: f64 = 1.35;
/// Minimum length in seconds of the intervals to which this ratio applies. A late sample distorts
/// shorter intervals more.
const UNDERSTATED_INTERVAL_S: f64 = 0.2;
/// Allowed relative difference between a mean latency and the bounds from a log.
const LATENCY_SLACK: f64 = 0.15;
/// Minimum share of the run that the intervals must cover.
const COVERED_MIN: f64 = 0.9;
const INTERVALS_MIN: usize = 5;

pub const RULE: Rule = Rule {
    id: "series-agrees",
    asks: "is the mean of the intervals equal to the printed mean?",
    explains: "The rate of a run is the mean rate of its intervals. If the printed rate is higher \
     than the rate of every interval, it was never reached. If it differs from their mean by more \
     than 10 %, it belongs to a different run or to other operations, or was scaled. If the tool's \
     log may understate the rate, the printed figure may be 35 % higher than the log. A mean \
     latency may be 15 % outside of the range from the harmonic to the arithmetic mean of the \
     intervals. In a closed loop, a slow interval contains fewer operations. In other loads, the \
     range is that of the intervals.",
    needs: "a rate, bandwidth or latency, and its value in intervals that add up to nine tenths of \
            the run",
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
            // A log of maxima (fio's option) does not contain the means.
            if reported.options.get("log_max_value").is_none_or(|value| value == "0") {
                for latency in operation.latencies.iter().filter(|latency| !latency.sampled) {
                    compare_latency(&mut outcome, part, operation, latency);
                }
            }
        }
    }
    outcome
}

struct Intervals {
    values: Vec<f64>,
    /// Maximum ratio of the printed figure to the mean of the intervals, if the log may understate
    /// the figure. It may be infinite.
    understated_max: Option<f64>,
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
        understated_max: logs.iter().any(|log| log.understates).then(|| {
            let complete = has_all_logs(part, logs.len()) && interval_s >= UNDERSTATED_INTERVAL_S;
            if complete { UNDERSTATED_MAX } else { f64::INFINITY }
        }),
        field: logs.first().map(|log| log.field.clone()).unwrap_or_default(),
    })
}

/// Returns true if each thread of a part has a log, and the logs contain no warm-up.
fn has_all_logs(part: &Part, logs: usize) -> bool {
    let threads = part.setting.threads.as_ref();
    threads.is_some_and(|threads| threads.value == logs as f64) && part.setting.warm_up_ns.is_none()
}

/// Compares a mean latency with a log of latencies.
fn compare_latency(
    outcome: &mut RuleResult,
    part: &Part,
    operation: &Operation,
    latency: &Latency,
) {
    let of = |series: &&Series| {
        series.quantity == Quantity::LatencyNs
            && series.kind == operation.kind
            && series.stage == latency.stage
            && !series.partial
    };
    let logs: Vec<&Series> = part.series.iter().filter(of).collect();
    let points = || logs.iter().flat_map(|log| &log.points);
    let values: Vec<f64> = points().map(|point| point.value).filter(|value| *value > 0.0).collect();
    let (Some(stated), Some(window)) =
        (latency.mean_ns.as_ref().filter(|mean| usable(mean)), window(part, operation))
    else {
        return;
    };
    let end_s = points().map(|point| point.at_s).fold(0.0, f64::max);
    let covered = end_s >= window.value / 1e9 * COVERED_MIN;
    if values.len() < INTERVALS_MIN || !covered || !has_all_logs(part, logs.len()) {
        return;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let kept = part.setting.outstanding.as_ref().is_some_and(|outstanding| outstanding.kept);
    let (low, high) = if kept {
        (count / values.iter().map(|value| 1.0 / value).sum::<f64>(), mean)
    } else {
        let extreme = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of).unwrap_or(mean);
        (extreme(f64::min), extreme(f64::max))
    };
    // If the format does not contain the options, the log may be one of maxima.
    let maxima = part.setting.counter_reset == CounterReset::Unknown;
    let fits = stated.least <= high * (1.0 + LATENCY_SLACK)
        && (maxima || stated.most >= low * (1.0 - LATENCY_SLACK));
    outcome.check((!fits).then(|| {
        let stage = match latency.stage {
            Stage::Submission => "submission latency",
            Stage::Completion => "completion latency",
            _ => "latency",
        };
        let says = format!(
            "the stated mean {stage} of {} is {}, but the mean of {} logged values is {}",
            operation.kind.word(),
            format::time(stated.value),
            format::number(count),
            format::time(mean)
        );
        Finding::new(Severity::Doubtful, says)
            .with_fields([&stated.field, &logs[0].field])
            .with_request("the log of this run")
    }));
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
    if let Some(ratio) = intervals.understated_max
        && stated.value >= mean
        && stated.least <= mean * ratio
    {
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
        // A log that may understate the rate proves nothing.
        let severity = match intervals.understated_max {
            Some(_) => Severity::Doubtful,
            None => Severity::Impossible,
        };
        return Some(
            Finding::new(severity, says).with_fields(fields).with_request("the log of this run"),
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
    use plimsoll_evidence::tool_result::{Kind, Outstanding, Point};

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
    fn a_mean_latency_agrees_with_its_log() {
        let doubted = |stated: f64, kept: bool, counter_reset| {
            let series = Series {
                quantity: Quantity::LatencyNs,
                kind: Kind::Read,
                stage: Stage::Total,
                field: "lat.log".into(),
                interval_s: Some(1.0),
                points: (1..=10)
                    .map(|s| Point { at_s: f64::from(s), value: f64::from(90 + s % 2 * 40) })
                    .collect(),
                partial: false,
                understates: false,
            };
            let latency =
                Latency { mean_ns: Some(Figure::exact(stated, "mean")), ..Latency::default() };
            let mut part = Part {
                window_ns: Some(Figure::exact(10e9, "runtime")),
                operations: vec![Operation {
                    latencies: vec![latency],
                    ..Operation::of(Kind::Read)
                }],
                series: vec![series],
                ..Part::default()
            };
            part.setting.threads = Some(Figure::exact(1.0, "numjobs"));
            let most = Figure::exact(4.0, "iodepth");
            part.setting.outstanding = Some(Outstanding { most, kept });
            part.setting.counter_reset = counter_reset;
            let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
            let outcome = check(&reported, &DeclaredFacts::default());
            assert_eq!(outcome.checked, 1);
            !outcome.findings.is_empty()
        };
        // The harmonic mean of the log is 106, its arithmetic mean is 110.
        let doubts = [80.0, 95.0, 120.0, 145.0, 160.0];
        let (never, unknown) = (CounterReset::Never, CounterReset::Unknown);
        assert_eq!(doubts.map(|ns| doubted(ns, true, never)), [true, false, false, true, true]);
        assert_eq!(doubts.map(|ns| doubted(ns, false, never)), [false, false, false, false, true]);
        assert!(doubted(70.0, false, never) && !doubted(70.0, false, unknown));
    }

    #[test]
    fn a_log_understates_a_rate_by_a_limited_share() {
        let intervals = |understated_max| Intervals {
            values: vec![100.0; 9],
            understated_max,
            field: "log".into(),
        };
        let doubted = |stated, understated_max| {
            let stated = Figure::exact(stated, "iops");
            let intervals = intervals(understated_max);
            compare_with_intervals(&stated, &intervals, Quantity::RatePerS).is_some()
        };
        assert!(!doubted(130.0, Some(1.35)) && doubted(143.0, Some(1.35)));
        assert!(!doubted(143.0, Some(f64::INFINITY)) && doubted(130.0, None));
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
