//! Checks whether the load stopped during the run.

use plimsoll_evidence::tool_result::{Part, Point, Quantity, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};

/// Minimum number of intervals that a series must have to show a stall.
const INTERVALS_MIN: usize = 10;
/// If at least this share of the intervals is empty, the mean no longer describes the run.
const EMPTY_SHARE: f64 = 0.1;
/// Maximum probability of as many empty intervals by chance, or of as many in succession. Above it,
/// a load of few operations explains them.
const CHANCE_MAX: f64 = 1e-4;

pub const RULE: Rule = Rule {
    id: "load-stalls",
    asks: "did the load stop during the run?",
    explains: "An interval without operations is an outage or a pause of the generator. The mean \
     latency does not include this time, because no operation completed in it. If at least a tenth \
     of the intervals are empty, rate and latency describe different times. An empty first or last \
     interval alone does not count as an outage. Gaps do not count either if the tool itself may \
     leave gaps in its log. With λ operations per interval, chance leaves a share e^-λ of the \
     intervals empty (S. D. Poisson, 1837). The rule fails only if the probability of as many \
     empty intervals (H. Chernoff, 1952), or of as many in succession, is below 0.01 %.",
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
        let share = (-operations_per_interval(part, series, inner)).exp();
        let successive = inner.chunk_by(|a, b| (a.value <= 0.0) == (b.value <= 0.0)).map(empty_of);
        let longest = successive.max().unwrap_or(0) as i32;
        let by_chance = chance(empty, inner.len(), share) > CHANCE_MAX
            && inner.len() as f64 * share.powi(longest) > CHANCE_MAX;
        outcome.check((stalled && much && !by_chance).then(|| {
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

/// Returns the mean number of operations in an interval. It is infinite if the result states only
/// bandwidths.
fn operations_per_interval(part: &Part, series: &Series, points: &[Point]) -> f64 {
    let mean = points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64;
    let stated = || part.operations.iter().filter_map(|operation| operation.rate_per_s.first());
    let rate_per_s = match series.quantity {
        Quantity::RatePerS => mean,
        _ if stated().next().is_some() => stated().map(|rate| rate.value).sum(),
        _ => f64::INFINITY,
    };
    rate_per_s * series.interval_s.unwrap_or(f64::INFINITY)
}

/// Returns an upper bound of the probability that at least `empty` of `all` intervals are empty, if
/// each is empty with the probability `share`. It is Chernoff's bound of the binomial distribution.
fn chance(empty: usize, all: usize, share: f64) -> f64 {
    let seen = empty as f64 / all as f64;
    if seen <= share {
        return 1.0;
    }
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    (-(all as f64) * (term(seen, share) + term(1.0 - seen, 1.0 - share))).exp()
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Stage};

    use super::*;

    fn findings(from: usize, empty: usize) -> Vec<Finding> {
        of(|i| if (from..from + empty).contains(&i) { 0.0 } else { 100.0 })
    }

    fn of(value: impl Fn(usize) -> f64) -> Vec<Finding> {
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

    #[test]
    fn a_slow_load_has_empty_intervals_by_chance() {
        // 0.46 operations per second leave 63 % of the intervals of 1 s empty.
        assert!(of(|i| if i % 8 < 5 { 0.0 } else { (i % 8 - 4) as f64 * 0.6 }).is_empty());
        // The same load with an outage of 50 intervals has more operations in the other intervals.
        assert_eq!(of(|i| if (5..55).contains(&i) { 0.0 } else { 3.0 }).len(), 1);
        assert_eq!(chance(30, 60, 0.6), 1.0);
        assert!((chance(60, 60, 0.5) / 0.5f64.powi(60) - 1.0).abs() < 1e-9);
        assert_eq!(chance(6, 60, 0.0), 0.0);
    }
}
