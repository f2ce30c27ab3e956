//! Checks whether the load stopped during the run.

use plimsoll_evidence::tool_result::{Point, Quantity, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};

/// Minimum number of intervals that a series must have to show a stall.
const INTERVALS_MIN: usize = 10;
/// If at least this share of the intervals is empty, the mean no longer describes the run.
const EMPTY_SHARE: f64 = 0.1;

pub const RULE: Rule = Rule {
    id: "load-stalls",
    asks: "did the load stop during the run?",
    explains: "An interval without operations is an outage or a pause of the generator. The mean \
     latency does not include this time, because no operation completed in it. If at least a tenth \
     of the intervals are empty, rate and latency describe different times. An empty first or last \
     interval alone does not count as an outage. Gaps do not count either if the tool itself may \
     leave gaps in its log.",
    needs: "the rate in ten or more intervals",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        let of = |quantity| {
            let all: Vec<&Series> = part
                .series
                .iter()
                .filter(|s| s.quantity == quantity && s.interval_s.is_some())
                .collect();
            // Several logs belong to clones of one job. One clone may pause while the other clones
            // work.
            if let [only] = all[..] { Some(only) } else { None }
        };
        let series = of(Quantity::RatePerS).or_else(|| of(Quantity::BandwidthPerS));
        let Some(series) = series.filter(|s| s.points.len() >= INTERVALS_MIN) else { continue };
        // fio's averaged logs may be too low because of the averaging. Series that are incomplete
        // only at the start or end of the run are exact.
        if series.understates && !series.partial {
            continue;
        }
        let empty_of = |points: &[Point]| points.iter().filter(|p| p.value <= 0.0).count();
        let inner = &series.points[1..series.points.len() - 1];
        let empty = empty_of(inner);
        let stalled = empty > 0 && empty < inner.len();
        let much = empty as f64 >= EMPTY_SHARE * inner.len() as f64;
        outcome.check((stalled && much).then(|| {
            let says = format!(
                "there were no operations in {} of {} intervals: the mean latency does not \
                 include this time",
                format::number(empty_of(&series.points) as f64),
                format::number(series.points.len() as f64)
            );
            Finding::new(Severity::Doubtful, says)
                .with_fields([&series.field])
                .with_request("the cause of the pause, and a run without it")
        }));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Part, Stage};

    use super::*;

    fn findings(from: usize, empty: usize) -> Vec<Finding> {
        let value = |i: usize| if (from..from + empty).contains(&i) { 0.0 } else { 100.0 };
        let points = (0..60).map(|i| Point { at_s: i as f64, value: value(i) }).collect();
        let series = Series {
            quantity: Quantity::RatePerS,
            kind: Kind::All,
            stage: Stage::Total,
            field: "rate".into(),
            interval_s: Some(1.0),
            points,
            partial: true,
            understates: false,
        };
        let part = Part { series: vec![series], ..Part::default() };
        let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
        check(&reported, &DeclaredFacts::default()).findings
    }

    #[test]
    fn an_outage_is_doubted_and_a_hiccup_is_not() {
        let found = |empty| findings(5, empty).len();
        assert_eq!((found(40), found(6), found(1), found(0)), (1, 1, 0, 0));
        assert!(findings(20, 40)[0].says.starts_with("there were no operations in 40 of 60"));
        assert!(findings(59, 1).is_empty());
    }
}
