//! Checks that no interval contains more operations than the whole run.

use plimsoll_evidence::tool_result::{
    Figure, Operation, Part, Quantity, SampleStatistics, ToolResult,
};

use super::super::format::ValueFormatter;
use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, per_s, usable, whose, window};

/// Tolerance: the operations of an interval may exceed the total by this share, because intervals
/// end a little later than stated.
const SLACK: f64 = 0.1;
/// Usual time between two samples of a tool (fio's `bwavgtime`). A shorter time yields more
/// samples.
const SAMPLE_S: f64 = 0.5;
/// Number of samples that may be missing, because the tool may take no sample in the first and in
/// the last interval of a run.
const SAMPLES_MISSING: f64 = 2.0;

pub const RULE: Rule = Rule {
    id: "interval-within-total",
    asks: "do the intervals, singly or together, contain more operations than the whole run?",
    explains: "The operations of an interval are a part of the operations of the run. If the rate \
               of an interval multiplied by its length exceeds the total of the run, a counter \
               wrapped around or was reset. If the sum over all intervals exceeds the total, the \
               intervals belong to a different run, or one of the two figures was scaled. Also, the \
               mean of the samples of the rate (or the smallest sample), multiplied by the total \
               time of the samples, cannot exceed the total. The tolerance is 10 %, because \
               intervals may end late.",
    needs: "the number of operations, and either their rate in intervals or samples of the rate",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        for (sampled, totals, format_value) in [
            (&operation.rate_sampled, &operation.count, format::number as ValueFormatter),
            (&operation.bandwidth_sampled, &operation.bytes, format::bytes),
        ] {
            if let Some((sampled, total)) = sampled.as_ref().zip(first(totals)) {
                check_samples(&mut outcome, (part, operation), sampled, total, format_value);
            }
        }
    }
    for part in &reported.parts {
        for series in part.series.iter().filter(|s| s.quantity == Quantity::RatePerS) {
            // The total of the run does not include the intervals of a warm-up.
            let Some(interval_s) =
                series.interval_s.filter(|_| !series.partial || series.understates)
            else {
                continue;
            };
            let operation = part.operations.iter().find(|o| o.kind == series.kind);
            let Some(total) = operation.and_then(|o| first(&o.count)) else { continue };
            let greatest = series.points.iter().max_by(|a, b| a.value.total_cmp(&b.value));
            let Some(point) = greatest else { continue };
            let done = point.value * interval_s;
            outcome.check((done > total.most * (1.0 + SLACK) + 1.0).then(|| {
                let says = format!(
                    "the interval at {} has a rate of {}, which is {} operations, but the whole run \
                     has only {}",
                    format::time(point.at_s * 1e9),
                    per_s(point.value),
                    format::number(done),
                    format::number(total.value)
                );
                Finding::new(Severity::Impossible, says)
                    .with_fields([&series.field, &total.field])
                    .with_request("the tool's version, and a run without this interval")
            }));
            // The intervals of other tools vary in length.
            if !(series.partial && series.understates) || done > total.most {
                continue;
            }
            let sum: f64 = series.points.iter().map(|p| p.value.max(0.0) * interval_s).sum();
            outcome.check((sum > total.most * (1.0 + SLACK) + 1.0).then(|| {
                let says = format!(
                    "{} intervals together have {} operations, but the whole run has only {}",
                    format::number(series.points.len() as f64),
                    format::number(sum),
                    format::number(total.value)
                );
                Finding::new(Severity::Impossible, says)
                    .with_fields([&total.field, &series.field])
                    .with_request("the log of this run")
            }));
        }
    }
    outcome
}

/// Compares the smallest sample of one thread with the total.
fn check_samples(
    outcome: &mut RuleResult,
    (part, operation): (&Part, &Operation),
    sampled: &SampleStatistics,
    total: &Figure,
    format_value: ValueFormatter,
) {
    let is_one = part.setting.threads.as_ref().is_some_and(|threads| threads.value == 1.0);
    let window = window(part, operation).filter(|_| is_one && !part.is_total);
    let samples = sampled.samples.as_ref().filter(|samples| usable(samples));
    let (Some(window), Some(samples)) = (window, samples) else { return };
    let share = samples.value / (samples.value + SAMPLES_MISSING);
    let time_s = (samples.value * SAMPLE_S).min(window.least / 1e9 * share);
    // The mean of samples of different lengths may be higher than the rate.
    let has_usual_length = samples.value * SAMPLE_S <= window.most / 1e9 * (1.0 + SLACK);
    let mean = sampled.mean.as_ref().filter(|mean| usable(mean) && has_usual_length);
    let min = sampled.min.as_ref().filter(|min| usable(min));
    let Some((least, word)) =
        mean.map(|mean| (mean, "on average")).or(min.map(|min| (min, "or more")))
    else {
        return;
    };
    let done = least.least * time_s;
    outcome.check((done > total.most * (1.0 + SLACK)).then(|| {
        let says = format!(
            "{}{} samples of {}/s {word} add up to at least {}, but the whole run has only {}",
            whose(part, operation),
            format::number(samples.value),
            format_value(least.value),
            format_value(done),
            format_value(total.value)
        );
        Finding::new(Severity::Impossible, says)
            .with_fields([&least.field, &total.field])
            .with_request("the log of this run")
    }));
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Point, Series, Stage};

    use super::*;

    #[test]
    fn the_smallest_sample_is_not_above_the_mean() {
        let findings = |min: f64, mean: Option<f64>, threads: f64| {
            let figure = |value: f64| Some(Figure::exact(value, "iops"));
            let operation = Operation {
                count: vec![Figure::exact(34_220.0, "total_ios")],
                window_ns: figure(2.001e9),
                rate_sampled: Some(SampleStatistics {
                    min: figure(min),
                    mean: mean.and_then(figure),
                    samples: figure(3.0),
                    ..SampleStatistics::default()
                }),
                ..Operation::of(Kind::Read)
            };
            let mut part = Part { operations: vec![operation], ..Part::default() };
            part.setting.threads = figure(threads);
            let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
            let outcome = check(&reported, &DeclaredFacts::default());
            (outcome.checked, outcome.findings.len())
        };
        assert_eq!(findings(15_782.0, None, 1.0), (1, 0));
        assert_eq!(findings(31_564.0, None, 1.0), (1, 1));
        assert_eq!(findings(15_782.0, Some(17_110.0), 1.0), (1, 0));
        assert_eq!(findings(15_782.0, Some(31_564.0), 1.0), (1, 1));
        // Several threads can record samples with the same time.
        assert_eq!(findings(31_564.0, None, 2.0), (0, 0));
    }

    #[test]
    fn an_interval_is_part_of_the_run() {
        let findings = |value: f64| {
            let kind = Kind::Other("transactions".into());
            let operation = Operation {
                count: vec![Figure::exact(8330.0, "n")],
                ..Operation::of(kind.clone())
            };
            let series = Series {
                quantity: Quantity::RatePerS,
                kind,
                stage: Stage::Total,
                field: "tps".into(),
                interval_s: Some(1.0),
                points: vec![Point { at_s: 1.0, value: 1300.0 }, Point { at_s: 2.0, value }],
                partial: true,
                understates: true,
            };
            let part =
                Part { operations: vec![operation], series: vec![series], ..Part::default() };
            let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
            check(&reported, &DeclaredFacts::default()).findings.len()
        };
        assert_eq!((findings(1400.0), findings(1.8e19), findings(8000.0)), (0, 1, 1));
    }
}
