//! The main figures of a result, for tables.

use plimsoll_evidence::tool_result::{Figure, Kind, Latency, Operation, Part, ToolResult};
use serde::Serialize;

use super::Span;
use super::rules::{bandwidth, rate, usable, window};

/// Parts count as running at the same time only if their run times differ by at most this share.
const TIMES_APART: f64 = 0.1;

/// Rate, bandwidth and latency of a whole result. A field is `None` if no single figure describes
/// the result. For example, consecutive phases have no common rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Headline {
    /// Operations per second, summed over all kinds of operations.
    pub rate_per_s: Option<f64>,
    /// Bytes per second, summed over all kinds of operations.
    pub bandwidth_per_s: Option<f64>,
    /// Mean latency of all operations, ns.
    pub latency_ns: Option<f64>,
    /// 99th percentile of the flush latency, ns. If the result has several parts, the largest
    /// value.
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
    // If reads and writes have separate figures, figures of other kinds are either the sum of these
    // two or unrelated to them.
    let whole = |o: &Operation| matches!(o.kind, Kind::Other(_) | Kind::All);
    let divided = parts.iter().flat_map(|part| &part.operations).any(|o| o.kind.moves_data());
    // A flush belongs to the writes before it, and has a separate figure.
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
    let in_run =
        |part, operation, (span, _): (Span, _)| Some(span.value * share_of_run(part, operation)?);
    let rate_of = |part, operation| in_run(part, operation, rate(part, operation)?);
    let bandwidth_of = |part, operation| in_run(part, operation, bandwidth(part, operation)?);
    let mean = every().filter_map(|(part, operation)| {
        let longest = operation.latencies.iter().filter_map(mean_ns).reduce(f64::max)?;
        Some((longest, rate_of(part, operation).unwrap_or(1.0)))
    });
    let mean: Vec<(f64, f64)> = mean.collect();
    let weight: f64 = mean.iter().map(|(_, weight)| weight).sum();
    Headline {
        rate_per_s: sum(all().map(|(part, o)| rate_of(part, o)).collect()),
        bandwidth_per_s: sum(all().map(|(part, o)| bandwidth_of(part, o)).collect()),
        latency_ns: (weight > 0.0)
            .then(|| mean.iter().map(|(mean, weight)| mean * weight).sum::<f64>() / weight),
        flush_ns_p99: flush_ns_p99(&parts),
    }
}

/// Returns the mean latency. If the tool prints a mean of 0.00 ms, the sum of the latencies may
/// still have enough digits to compute the mean.
fn mean_ns(latency: &Latency) -> Option<f64> {
    let value =
        |figure: &Option<Figure>| figure.as_ref().filter(|f| usable(f)).map(|figure| figure.value);
    let quotient = || Some(value(&latency.sum_ns)? / value(&latency.count)?);
    let mean = value(&latency.mean_ns).filter(|mean| *mean > 0.0).or_else(quotient);
    mean.filter(|mean| mean.is_finite() && *mean > 0.0)
}

/// Returns the share of the part's run time in which operations of this kind ran. `None` if reads
/// and writes have different run times and may or may not have run at the same time.
fn share_of_run(part: &Part, operation: &Operation) -> Option<f64> {
    let length = |operation: &Operation| operation.window_ns.as_ref().map(|window| window.value);
    let moves = part.operations.iter().filter(|o| o.kind.moves_data());
    let lengths: Vec<f64> = moves.filter_map(length).filter(|length| *length > 0.0).collect();
    let own = length(operation).filter(|own| *own > 0.0 && operation.kind.moves_data());
    let Some(own) = own else { return Some(1.0) };
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    let alike = lengths.iter().all(|length| 1.0 - length / longest <= TIMES_APART);
    match part.setting.read_percent.as_ref().map(|percent| percent.value) {
        // If a write-only job contains reads, these verify its writes. They may run between the
        // writes or after them.
        Some(percent) if percent <= 0.0 || percent >= 100.0 => {
            Some(own / lengths.iter().sum::<f64>())
        }
        Some(_) => Some(own / longest),
        None => alike.then_some(1.0),
    }
}

fn flush_ns_p99(parts: &[&Part]) -> Option<f64> {
    let operations = parts.iter().flat_map(|part| &part.operations);
    let flushes = operations.filter(|o| o.kind == Kind::Sync).flat_map(|o| &o.latencies);
    let p99 = flushes.flat_map(|l| &l.percentiles).filter(|p| p.quantile == 0.99 && usable(&p.ns));
    p99.map(|percentile| percentile.ns.value).reduce(f64::max)
}

/// Returns true if all parts are jobs or ranks of one run and ran for about the same time.
fn side_by_side(parts: &[&Part]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return false };
    let length = |part: &Part| {
        let windows = part.operations.iter().filter_map(|o| window(part, o));
        windows.map(|w| w.value).reduce(f64::max)
    };
    let Some(usual) = length(first) else { return false };
    rest.iter().all(|part| {
        let alike = part.name == first.name || part.rank.is_some() || part.host.is_some();
        let beside = alike && part.group == first.group;
        beside && length(part).is_some_and(|l| (l / usual - 1.0).abs() <= TIMES_APART)
    })
}

#[cfg(test)]
mod tests {
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
    fn a_mean_of_zero_is_not_shown_as_zero() {
        let of = |latency: Latency| {
            let mut one = part("a", 10.0, 60.0);
            one.operations[0].latencies = vec![latency];
            headline(&ToolResult { parts: vec![one], ..ToolResult::default() }).latency_ns
        };
        let figure = |value: f64| Some(Figure::rounded(value, 10_000.0, "ms"));
        let zero = Latency { mean_ns: figure(0.0), ..Latency::default() };
        assert_eq!(of(zero.clone()), None);
        assert_eq!(of(Latency { mean_ns: figure(7e4), ..zero.clone() }), Some(7e4));
        let count = Some(Figure::exact(418_695.0, "events"));
        let summed = of(Latency { sum_ns: figure(1.83099e9), count, ..zero });
        assert!((summed.unwrap() - 4373.1).abs() < 0.1, "{summed:?}");
    }

    #[test]
    fn phases_of_a_job_do_not_add_up() {
        // 4,096 writes in 193 ms, then 4,096 reads in 118 ms.
        let rate = |percent: Option<f64>| {
            let mut job = part("a", 4096.0 / 0.193, 0.193);
            job.operations[0].kind = Kind::Write;
            job.operations.extend(part("a", 4096.0 / 0.118, 0.118).operations);
            job.setting.read_percent = percent.map(|percent| Figure::exact(percent, "rw"));
            headline(&ToolResult { parts: vec![job], ..ToolResult::default() }).rate_per_s
        };
        assert_eq!(rate(Some(0.0)).map(f64::round), Some(26_341.0));
        assert_eq!(rate(Some(50.0)).map(f64::round), Some(42_446.0));
        assert_eq!(rate(None), None);
    }

    #[test]
    fn jobs_of_one_run_add_up_and_phases_do_not() {
        let of = |parts| headline(&ToolResult { parts, ..ToolResult::default() }).rate_per_s;
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("a", 12.0, 61.0)]), Some(22.0));
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("b", 12.0, 60.0)]), None);
        assert_eq!(of(vec![part("a", 10.0, 60.0), part("a", 12.0, 90.0)]), None);
        let later = Part { group: Some("1".into()), ..part("a", 12.0, 60.0) };
        assert_eq!(of(vec![part("a", 10.0, 60.0), later]), None);
        assert_eq!(of(Vec::new()), None);
    }
}
