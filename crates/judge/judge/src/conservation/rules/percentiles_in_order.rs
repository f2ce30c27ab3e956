//! Checks that no percentile is lower than a percentile of lower rank, and that all agree with the
//! histogram.

use plimsoll_evidence::tool_result::{Bin, Figure, Latency, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{usable, whose};

/// Allowed relative difference between the sum of a histogram and the number of operations. Tools
/// omit values above the last bin.
const COUNT_SLACK: f64 = 0.001;

pub const RULE: Rule = Rule {
    id: "percentiles-in-order",
    asks: "do percentiles rise with their rank and agree with the histogram?",
    explains: "A higher percentile never has a lower latency. If the result also contains a \
     histogram, each percentile must be in the bin that contains its rank, and the sum of the bins \
     must be the number of operations. Percentiles may be off by the width of their bins.",
    needs: "two percentiles, or a histogram",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        for latency in &operation.latencies {
            let whose = whose(part, operation);
            order(&mut outcome, latency, &whose);
            let count =
                latency.count.as_ref().or(operation.count.first().filter(|_| !latency.sampled));
            histogram(&mut outcome, latency, count, &whose);
        }
    }
    outcome
}

fn order(outcome: &mut RuleResult, latency: &Latency, whose: &str) {
    let mut sorted: Vec<_> = latency.percentiles.iter().filter(|p| usable(&p.ns)).collect();
    sorted.sort_by(|a, b| a.quantile.total_cmp(&b.quantile));
    for pair in sorted.windows(2) {
        let [low, high] = pair else { continue };
        if low.quantile == high.quantile {
            continue;
        }
        outcome.check((low.ns.least > high.ns.most).then(|| {
            let [low_says, high_says] =
                format::distinct(format::time, [low.ns.value, high.ns.value]);
            let says = format!(
                "{whose}{} is {low_says}, but {} is only {high_says}",
                format::quantile(low.quantile),
                format::quantile(high.quantile),
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&high.ns.field, &low.ns.field])
                .with_request("the histogram behind the percentiles")
        }));
    }
}

fn histogram(outcome: &mut RuleResult, latency: &Latency, count: Option<&Figure>, whose: &str) {
    let total: f64 = latency.bins.iter().map(|bin| bin.count).sum();
    if total <= 0.0 {
        return;
    }
    if let Some(count) = count.filter(|count| usable(count)) {
        let off = (total - count.value).abs() / count.value.max(1.0);
        outcome.check((off > COUNT_SLACK && (total - count.value).abs() > 1.0).then(|| {
            let says = format!(
                "{whose}the bins of the histogram contain {} operations, but {} were counted",
                format::number(total),
                format::number(count.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&count.field])
                .with_request("the tool's own output")
        }));
    }
    for percentile in latency.percentiles.iter().filter(|p| usable(&p.ns)) {
        let rank = percentile.quantile * total;
        let (from, to) = (bin_at(&latency.bins, rank - 1.0), bin_at(&latency.bins, rank + 1.0));
        let outside = percentile.ns.most < from.from_ns || percentile.ns.least > to.to_ns;
        outcome.check(outside.then(|| {
            let says = format!(
                "{whose}{} is {}, but in the histogram it is between {} and {}",
                format::quantile(percentile.quantile),
                format::time(percentile.ns.value),
                format::time(from.from_ns),
                format::time(to.to_ns)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&percentile.ns.field])
                .with_request("the tool's own output")
        }));
    }
}

fn bin_at(bins: &[Bin], rank: f64) -> Bin {
    let mut below = 0.0;
    let holds = bins.iter().find(|bin| {
        below += bin.count;
        below >= rank
    });
    holds.or(bins.last()).copied().unwrap_or(Bin { from_ns: 0.0, to_ns: f64::INFINITY, count: 0.0 })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Operation, Part, Percentile};

    use super::*;

    fn findings(latency: Latency, count: f64) -> usize {
        let operation = Operation {
            count: vec![Figure::exact(count, "n")],
            latencies: vec![latency],
            ..Operation::default()
        };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default())
            .findings
            .len()
    }

    #[test]
    fn a_higher_rank_is_not_a_lower_latency() {
        let p = |quantile, ns| Percentile { quantile, ns: Figure::rounded(ns, 2.0, "p") };
        let of = |percentiles| Latency { percentiles, ..Latency::default() };
        assert_eq!(findings(of(vec![p(0.5, 10.0), p(0.9, 10.0), p(0.99, 30.0)]), 9.0), 0);
        // The bins touch: the value 10 may be as low as 9, and the value 8 as high as 9.
        assert_eq!(findings(of(vec![p(0.5, 10.0), p(0.9, 8.0)]), 9.0), 0);
        assert_eq!(findings(of(vec![p(0.9, 7.0), p(0.5, 10.0)]), 9.0), 1);
    }

    #[test]
    fn the_histogram_says_the_same() {
        let bin = |from_ns, count| Bin { from_ns, to_ns: from_ns + 10.0, count };
        let p = |quantile, ns| Percentile { quantile, ns: Figure::exact(ns, "p") };
        let of = |percentiles| Latency {
            percentiles,
            bins: vec![bin(0.0, 50.0), bin(10.0, 40.0), bin(100.0, 10.0)],
            ..Latency::default()
        };
        assert_eq!(findings(of(vec![p(0.4, 5.0), p(0.8, 15.0), p(0.95, 105.0)]), 100.0), 0);
        assert_eq!(findings(of(vec![p(0.8, 105.0)]), 100.0), 1);
        assert_eq!(findings(of(vec![]), 120.0), 1);
    }
}
