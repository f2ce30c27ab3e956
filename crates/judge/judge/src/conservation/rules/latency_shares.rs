//! Checks completion latencies against their distribution over fixed ranges (fio's `latency_us`).

use plimsoll_evidence::tool_result::{
    Bin, Figure, Kind, Latency, Operation, Part, Percentile, Stage,
};

use super::super::{Finding, RuleResult, Severity, Span, format};
use super::{counter_reset, first, usable, whose};

/// Maximum deviation of the sum of the shares from 1. A larger deviation means that a part of the
/// distribution is missing, or that the tool counted operations of a warm-up.
const SUM_SLACK: f64 = 0.02;
/// Rounding error of the sum of all shares, of which fio rounds the smallest up.
const ROUNDING_SLACK: f64 = 0.005;
/// Rounding error of a share. The tool prints every nonzero share as 0.01 % or more.
const SHARE_SLACK: f64 = 0.0001;
/// Share by which the mean may exceed its bounds. The numbers of operations in each direction may
/// be slightly off.
const MEAN_SLACK: f64 = 0.01;

/// Relative error of a percentile: fio prints the bounds of bins that are 1.6 % wide.
const PERCENTILE_SLACK: f64 = 0.02;
/// Number of operations by which a percentile may be off.
const OPERATIONS_SLACK: f64 = 2.0;

pub(super) fn check(outcome: &mut RuleResult, part: &Part) {
    let bins = &part.latency_shares;
    let sum: f64 = bins.iter().map(|bin| bin.count).sum();
    let (Some(lowest), Some(highest)) = (bins.first(), bins.last()) else { return };
    let Some(stated) = CompletionFigures::of(part) else { return };
    if let Some(expected) = expected_sum(part) {
        let found = Span::exact(sum).widened(ROUNDING_SLACK);
        outcome.check((!found.meets(expected)).then(|| {
            let says = format!(
                "the shares in the distribution of latencies sum to {}, but they must sum to {}",
                format::percent(sum),
                format::percent(expected.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields(stated.figures.iter().map(|figure| figure.field.clone()))
                .with_request("the tool's own output")
        }));
    }
    if (sum - 1.0).abs() > SUM_SLACK {
        return;
    }
    percentiles(outcome, part, bins);
    for (word, figures, bin) in
        [("shortest", &stated.min, lowest), ("longest", &stated.max, highest)]
    {
        let Some(span) = figures else { continue };
        let outside = span.most < bin.from_ns || span.least > bin.to_ns;
        outcome.check(outside.then(|| finding(part, word, *span, bin.from_ns, bin.to_ns, &stated)));
    }
    let Some(mean) = stated.mean else { return };
    let longest_ns = stated.max.map_or(f64::INFINITY, |max| max.most);
    let least = |bin: &Bin| bin.from_ns * (bin.count - SHARE_SLACK).max(0.0);
    let most = |bin: &Bin| bin.to_ns.min(longest_ns) * (bin.count + SHARE_SLACK);
    let least_ns = bins.iter().map(least).sum::<f64>() / sum * (1.0 - MEAN_SLACK);
    let most_ns = bins.iter().map(most).sum::<f64>() / sum * (1.0 + MEAN_SLACK);
    let outside = mean.most < least_ns || mean.least > most_ns;
    outcome.check(outside.then(|| finding(part, "mean", mean, least_ns, most_ns, &stated)));
}

/// Returns the sum of all shares. fio divides the number of completion latencies in a range by the
/// number of issued operations (`stat_calc_lat` in stat.c). An issued operation may not have
/// completed. A latency may belong to an operation that fio issued before it reset its counters.
/// Returns `None` if these numbers are unknown.
fn expected_sum(part: &Part) -> Option<Span> {
    let failed = part.errors.as_ref().is_some_and(|errors| errors.most > 0.0);
    let depth = part.setting.outstanding.as_ref().map_or(f64::INFINITY, |o| o.most.most);
    let (mut issued, mut completed) = (0.0, Span::exact(0.0));
    for operation in part.operations.iter().filter(|o| o.kind != Kind::Sync) {
        let count = first(&operation.count)?;
        let requeued = operation.short.as_ref().map_or(0.0, |short| short.value);
        let least = if failed { 0.0 } else { count.least.min(count.value - depth) - requeued };
        let most = count.value + counter_reset::in_flight(part, operation).most;
        completed = completed.plus(Span { value: count.value, least: least.max(0.0), most });
        issued += count.value;
    }
    completed.over(Span::exact(issued)).filter(|sum| sum.most.is_finite())
}

/// Checks the percentiles of a part with only one kind of operation. The distribution of other parts
/// includes all kinds together. At a reset of the counters, the tool may keep one of the two.
fn percentiles(outcome: &mut RuleResult, part: &Part, bins: &[Bin]) {
    let mut measured = part.operations.iter().filter(|o| o.kind != Kind::Sync && !o.is_idle());
    let (Some(operation), None) = (measured.next(), measured.next()) else { return };
    if counter_reset::may_reset(part) {
        return;
    }
    let completion = |latency: &&Latency| latency.stage == Stage::Completion;
    let Some(latency) = operation.latencies.iter().find(completion) else { return };
    let Some(count) = count(operation, latency).filter(|count| *count > 0.0) else { return };
    let share_slack = SHARE_SLACK * (bins.len() + 2) as f64 + OPERATIONS_SLACK / count;
    let share = |of: &dyn Fn(&Bin) -> bool| -> f64 {
        bins.iter().filter(|bin| of(bin)).map(|bin| bin.count).sum()
    };
    for Percentile { quantile, ns } in latency.percentiles.iter().filter(|p| usable(&p.ns)) {
        let shorter = share(&|bin| bin.to_ns <= ns.least * (1.0 - PERCENTILE_SLACK));
        let not_longer = share(&|bin| bin.from_ns < ns.most * (1.0 + PERCENTILE_SLACK));
        let wrong = if shorter > quantile + share_slack {
            Some(format!("{:.2} % of the operations are shorter", shorter * 100.0))
        } else if not_longer < quantile - share_slack {
            Some(format!("at most {:.2} % of the operations are as short", not_longer * 100.0))
        } else {
            None
        };
        outcome.check(wrong.map(|wrong| {
            let says = format!(
                "{}{} is {}, but according to the distribution of latencies {wrong}",
                whose(part, operation),
                format::quantile(*quantile),
                format::time(ns.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&ns.field])
                .with_request("the tool's own output")
        }));
    }
}

fn finding(
    part: &Part,
    word: &str,
    figure: Span,
    from_ns: f64,
    to_ns: f64,
    stated: &CompletionFigures<'_>,
) -> Finding {
    let whose = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
    let says = format!(
        "{whose}the {word} completion latency is {}, but according to the distribution of \
         latencies it is between {} and {}",
        format::time(figure.value),
        format::time(from_ns),
        format::time(to_ns)
    );
    Finding::new(Severity::Impossible, says)
        .with_fields(stated.figures.iter().map(|figure| figure.field.clone()))
        .with_request("the tool's own output")
}

/// Completion latencies of a part, for all kinds of operations together.
struct CompletionFigures<'r> {
    min: Option<Span>,
    mean: Option<Span>,
    max: Option<Span>,
    figures: Vec<&'r Figure>,
}

impl<'r> CompletionFigures<'r> {
    /// Returns `None` if the result lacks the completion latency of a kind of operation.
    fn of(part: &'r Part) -> Option<Self> {
        let measured = part.operations.iter().filter(|operation| operation.kind != Kind::Sync);
        let latencies: Option<Vec<(&Operation, &Latency)>> = measured
            .map(|operation| {
                let mut latencies = operation.latencies.iter();
                Some((operation, latencies.find(|latency| latency.stage == Stage::Completion)?))
            })
            .collect();
        let latencies = latencies.filter(|latencies| !latencies.is_empty())?;
        let all = |of: fn(&Latency) -> &Option<Figure>| -> Option<Vec<&'r Figure>> {
            let figure =
                |(_, latency): &(_, &'r Latency)| of(latency).as_ref().filter(|f| usable(f));
            latencies.iter().map(figure).collect()
        };
        let (min, mean, max) = (all(|l| &l.min_ns), all(|l| &l.mean_ns), all(|l| &l.max_ns));
        let extreme = |figures: &Option<Vec<&Figure>>, of: fn(f64, f64) -> f64| {
            let spans = figures.iter().flatten().map(|figure| Span::from(*figure));
            spans.reduce(|a, b| Span {
                value: of(a.value, b.value),
                least: of(a.least, b.least),
                most: of(a.most, b.most),
            })
        };
        let counts: Option<Vec<f64>> =
            latencies.iter().map(|(operation, latency)| count(operation, latency)).collect();
        let weighted = mean.as_ref().and_then(|means| {
            let terms = means.iter().zip(counts.as_ref()?);
            let sum = Span::sum(terms.map(|(mean, count)| Span::from(*mean).scaled(*count)))?;
            sum.over(Span::exact(counts.iter().flatten().sum()))
        });
        // If the numbers of operations are unknown, the mean is between the means of reads and
        // writes.
        let ends = extreme(&mean, f64::min).zip(extreme(&mean, f64::max));
        let between = ends.map(|(low, high)| Span { most: high.most, ..low });
        Some(Self {
            min: extreme(&min, f64::min),
            mean: weighted.or(between),
            max: extreme(&max, f64::max),
            figures: [mean, max, min].into_iter().flatten().flatten().collect(),
        })
    }
}

fn count(operation: &Operation, latency: &Latency) -> Option<f64> {
    let count = latency.count.as_ref().or(first(&operation.count))?;
    Some(count.value.max(0.0))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{CounterReset, Outstanding};

    use super::*;

    /// Half of the latencies are between 50 and 100 us, half between 100 and 250 us.
    fn findings(latencies: &[(f64, f64, f64)], shares: [f64; 2]) -> (usize, usize) {
        let exact = |us: f64| Some(Figure::exact(us * 1e3, "lat"));
        let operation = |(min, mean, max): &(f64, f64, f64)| Operation {
            count: vec![Figure::exact(1000.0, "count")],
            latencies: vec![Latency {
                stage: Stage::Completion,
                min_ns: exact(*min),
                mean_ns: exact(*mean),
                max_ns: exact(*max),
                ..Latency::default()
            }],
            ..Operation::of(Kind::Read)
        };
        let bin = |from: f64, to: f64, count| Bin { from_ns: from * 1e3, to_ns: to * 1e3, count };
        let part = Part {
            operations: latencies.iter().map(operation).collect(),
            latency_shares: vec![bin(50.0, 100.0, shares[0]), bin(100.0, 250.0, shares[1])],
            ..Part::default()
        };
        let mut outcome = RuleResult::default();
        check(&mut outcome, &part);
        (outcome.checked, outcome.findings.len())
    }

    #[test]
    fn latencies_are_in_the_ranges_of_their_distribution() {
        let halves = [0.5, 0.5];
        assert_eq!(findings(&[(60.0, 120.0, 240.0)], halves), (4, 0));
        assert_eq!(findings(&[(60.0, 70.0, 240.0)], halves), (4, 1));
        assert_eq!(findings(&[(60.0, 180.0, 240.0)], halves), (4, 1));
        assert_eq!(findings(&[(6.0, 12.0, 24.0)], halves), (4, 3));
        // The extremes and the mean are those of both directions together.
        assert_eq!(findings(&[(60.0, 80.0, 90.0), (110.0, 160.0, 240.0)], halves), (4, 0));
        assert_eq!(findings(&[(60.0, 65.0, 90.0), (110.0, 65.0, 240.0)], halves), (4, 1));
    }

    #[test]
    fn without_counts_the_mean_is_between_those_of_the_directions() {
        let mean = |us: [f64; 2]| {
            let operation = |us: f64| Operation {
                latencies: vec![Latency {
                    stage: Stage::Completion,
                    mean_ns: Some(Figure::exact(us * 1e3, "lat")),
                    ..Latency::default()
                }],
                ..Operation::of(Kind::Read)
            };
            let bin = |from_ns, to_ns| Bin { from_ns, to_ns, count: 0.5 };
            let part = Part {
                operations: us.into_iter().map(operation).collect(),
                latency_shares: vec![bin(50e3, 100e3), bin(100e3, 250e3)],
                ..Part::default()
            };
            let mut outcome = RuleResult::default();
            check(&mut outcome, &part);
            (outcome.checked, outcome.findings.len())
        };
        assert_eq!((mean([20.0, 900.0]), mean([20.0, 30.0])), ((1, 0), (1, 1)));
    }

    #[test]
    fn percentiles_are_in_the_range_of_their_rank() {
        let findings = |quantile: f64, us: f64, kinds: usize| {
            let operation = Operation {
                count: vec![Figure::exact(1000.0, "count")],
                latencies: vec![Latency {
                    stage: Stage::Completion,
                    percentiles: vec![Percentile { quantile, ns: Figure::exact(us * 1e3, "p") }],
                    ..Latency::default()
                }],
                ..Operation::of(Kind::Read)
            };
            let bin = |from_ns, to_ns, count| Bin { from_ns, to_ns, count };
            let part = Part {
                operations: vec![operation; kinds],
                latency_shares: vec![bin(50e3, 100e3, 0.9), bin(100e3, 250e3, 0.1)],
                ..Part::default()
            };
            let mut outcome = RuleResult::default();
            check(&mut outcome, &part);
            outcome.findings.iter().map(|finding| finding.says.clone()).collect::<Vec<_>>()
        };
        for (quantile, us) in [(0.5, 60.0), (0.9, 99.0), (0.9, 101.0), (0.901, 99.0), (0.99, 240.0)]
        {
            assert!(findings(quantile, us, 1).is_empty(), "{quantile} {us}");
        }
        let says = "read: p99 is 80 us, but according to the distribution of latencies at most \
                    90.00 % of the operations are as short";
        assert_eq!(findings(0.99, 80.0, 1), [says]);
        assert_eq!(findings(0.5, 120.0, 1).len(), 1);
        assert!(findings(0.99, 80.0, 2).is_empty(), "the distribution is that of both kinds");
    }

    #[test]
    fn the_shares_are_of_the_issued_operations() {
        let sum = |in_flight: f64, failed: f64, reset| {
            let mut part = Part {
                operations: vec![Operation {
                    count: vec![Figure::exact(1000.0, "count")],
                    ..Operation::of(Kind::Read)
                }],
                errors: Some(Figure::exact(failed, "errors")),
                ..Part::default()
            };
            let most = Figure::exact(in_flight, "iodepth");
            part.setting.outstanding = Some(Outstanding { most, kept: true });
            part.setting.counter_reset = reset;
            expected_sum(&part).map(|sum| (sum.least, sum.most))
        };
        assert_eq!(sum(100.0, 0.0, CounterReset::Never), Some((0.9, 1.0)));
        assert_eq!(sum(100.0, 0.0, CounterReset::Unknown), Some((0.9, 1.1)));
        assert_eq!(sum(100.0, 1.0, CounterReset::Never), Some((0.0, 1.0)));
        assert_eq!(findings(&[(60.0, 120.0, 240.0)], [0.9, 0.47]), (1, 1));
        assert_eq!(expected_sum(&Part::default()), None);
    }

    #[test]
    fn an_incomplete_distribution_is_not_used() {
        assert_eq!(findings(&[(6.0, 12.0, 24.0)], [0.5, 0.4]), (1, 0));
        assert_eq!(findings(&[], [0.5, 0.5]), (0, 0));
    }
}
