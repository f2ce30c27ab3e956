//! Checks that no interval did more than the whole run.

use plimsoll_evidence::tool_result::{Quantity, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{first, per_s};

/// Share by which an interval may exceed the total: it ends a little later than stated.
const SLACK: f64 = 0.1;

pub const RULE: Rule = Rule {
    id: "interval-within-total",
    asks: "did one interval, or all intervals together, do more operations than the whole run?",
    explains: "The operations of one interval are part of those of the run. An interval whose rate times its \
        length exceeds the total is not a measurement: a counter wrapped around or was reset. If all \
        intervals together exceed it, they belong to another run, or one of the two was scaled. 10 % are \
        allowed for intervals that end late.",
    needs: "the number of operations, and their rate in intervals",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        for series in part.series.iter().filter(|s| s.quantity == Quantity::RatePerS) {
            // The total excludes intervals of a warm-up.
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
                    "an interval at {} ran at {}, which is {} operations; the whole run did {}",
                    format::time(point.at_s * 1e9),
                    per_s(point.value),
                    format::number(done),
                    format::number(total.value)
                );
                Finding::new(Severity::Impossible, says)
                    .with_fields([&series.field, &total.field])
                    .with_request("the tool's version, and a run without the interval")
            }));
            // The lengths of the intervals of other tools vary.
            if !(series.partial && series.understates) || done > total.most {
                continue;
            }
            let sum: f64 = series.points.iter().map(|p| p.value.max(0.0) * interval_s).sum();
            outcome.check((sum > total.most * (1.0 + SLACK) + 1.0).then(|| {
                let says = format!(
                    "{} intervals did {} operations together; the whole run did {}",
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

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Point, Series, Stage};

    use super::*;

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
