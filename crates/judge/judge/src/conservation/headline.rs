//! The main figures of a result, for tables.

use plimsoll_evidence::tool_result::{Kind, Operation, Part, ToolResult};
use serde::Serialize;

use super::rules::{bandwidth, rate, usable, window};

/// Maximum relative difference between the times of parts that ran side by side.
const TIMES_APART: f64 = 0.1;

/// Rate, bandwidth and latency of a whole result. A field is `None` if no single figure describes
/// the result. For example, consecutive phases have no common rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Headline {
    /// Operations per second, all kinds together.
    pub rate_per_s: Option<f64>,
    /// Bytes per second, all kinds together.
    pub bandwidth_per_s: Option<f64>,
    /// Mean latency of all operations, ns.
    pub latency_ns: Option<f64>,
    /// 99th percentile of flushes, ns; the largest of all parts.
    pub flush_ns_p99: Option<f64>,
}

/// Returns the main figures of a result.
pub fn headline(reported: &ToolResult) -> Headline {
    let totals: Vec<&Part> = reported.parts.iter().filter(|part| part.is_total).collect();
    let parts: Vec<&Part> = reported.parts.iter().filter(|part| !part.is_total).collect();
    let parts = match (&parts[..], &totals[..]) {
        ([_], _) => parts,
        (_, [_]) => totals,
        _ if side_by_side(&parts) => parts,
        _ => return Headline::default(),
    };
    // If reads and writes have figures of their own, other kinds are their sum or unrelated.
    let whole = |o: &Operation| matches!(o.kind, Kind::Other(_) | Kind::All);
    let divided = parts.iter().flat_map(|part| &part.operations).any(|o| o.kind.moves_data());
    // A flush belongs to the writes before it, and has its own figure.
    let every = || {
        let operations =
            parts.iter().flat_map(|part| part.operations.iter().map(move |o| (*part, o)));
        operations.filter(move |(_, o)| !(divided && o.kind == Kind::Sync))
    };
    let all = || every().filter(move |(_, o)| !(divided && whole(o)));
    let sum = |values: Vec<Option<f64>>| -> Option<f64> {
        let known: Vec<f64> = values.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum())
    };
    let rate_of = |part, operation| rate(part, operation).map(|(span, _)| span.value);
    let mean = every().filter_map(|(part, operation)| {
        let means = operation.latencies.iter().filter_map(|l| l.mean_ns.as_ref());
        let longest = means.filter(|m| usable(m)).map(|m| m.value).reduce(f64::max)?;
        Some((longest, rate_of(part, operation).unwrap_or(1.0)))
    });
    let mean: Vec<(f64, f64)> = mean.collect();
    let weight: f64 = mean.iter().map(|(_, weight)| weight).sum();
    Headline {
        rate_per_s: sum(all().map(|(part, o)| rate_of(part, o)).collect()),
        bandwidth_per_s: sum(all().map(|(p, o)| bandwidth(p, o).map(|(s, _)| s.value)).collect()),
        latency_ns: (weight > 0.0)
            .then(|| mean.iter().map(|(mean, weight)| mean * weight).sum::<f64>() / weight),
        flush_ns_p99: flush_ns_p99(&parts),
    }
}

fn flush_ns_p99(parts: &[&Part]) -> Option<f64> {
    let operations = parts.iter().flat_map(|part| &part.operations);
    let flushes = operations.filter(|o| o.kind == Kind::Sync).flat_map(|o| &o.latencies);
    let p99 = flushes.flat_map(|l| &l.percentiles).filter(|p| p.quantile == 0.99 && usable(&p.ns));
    p99.map(|percentile| percentile.ns.value).reduce(f64::max)
}

/// Returns true if all parts took about equally long and are jobs or ranks of one run.
fn side_by_side(parts: &[&Part]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return false };
    let length = |part: &Part| {
        let windows = part.operations.iter().filter_map(|o| window(part, o));
        windows.map(|w| w.value).reduce(f64::max)
    };
    let Some(usual) = length(first) else { return false };
    rest.iter().all(|part| {
        let alike = part.name == first.name || part.rank.is_some() || part.host.is_some();
        alike && length(part).is_some_and(|l| (l / usual - 1.0).abs() <= TIMES_APART)
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Figure;

    use super::*;

    fn part(name: &str, rate: f64, seconds: f64) -> Part {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(rate, "rate")],
            window_ns: Some(Figure::exact(seconds * 1e9, "time")),
            ..Operation::of(Kind::Read)
        };
        Part { name: name.into(), operations: vec![operation], ..Part::default() }
    }

    #[test]
    fn flushes_are_not_operations_of_the_rate() {
        let mut one = part("a", 10.0, 60.0);
        one.operations.push(Operation {
            count: vec![Figure::exact(600.0, "sync")],
            ..Operation::of(Kind::Sync)
        });
        let result = ToolResult { parts: vec![one], ..ToolResult::default() };
        assert_eq!(headline(&result).rate_per_s, Some(10.0));
    }

    #[test]
    fn jobs_of_one_run_add_up_and_phases_do_not() {
        let of = |parts| headline(&ToolResult { parts, ..ToolResult::default() }).rate_per_s;
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("a", 12.0, 61.0)]), Some(22.0));
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("b", 12.0, 60.0)]), None);
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("a", 12.0, 90.0)]), None);
        assert_eq!(of(Vec::new()), None);
    }
}
