//! Results as CSV: one row per class of I/O and instance, in base units.

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_judge::figures::measured;

use crate::number::Unit;
use crate::run::distribution::{QUANTILES, percentile_ns};
use crate::run::kinds::Operation;
use crate::table::{Cell, Column, Table};

/// Returns a row per class of I/O, with run, verdict, totals, rates and latencies.
pub fn classes(bundle: &Bundle, verdict: &Verdict) -> String {
    let mut columns = vec![
        Column::words("", "run_id"),
        Column::words("", "plan"),
        Column::words("", "verdict"),
        Column::words("", "class"),
        Column::words("", "group"),
        Column::words("", "instance"),
        Column::words("", "operation"),
    ];
    let keys = [
        "measured_ns",
        "count",
        "moved_bytes",
        "rate_per_s",
        "bandwidth_bytes_per_s",
        "latency_ns_avg",
        "latency_ns_max",
        "service_ns_avg",
        "service_ns_max",
        "errors",
    ];
    columns.extend(keys.map(|key| Column::numbers("", key)));
    let quantiles = QUANTILES.map(|(_, key, _)| format!("latency_ns_{key}"));
    columns.extend(quantiles.iter().map(|key| Column::numbers("", key)));
    let mut table = Table::new("", columns);
    let measured_ns = measured(bundle).map(|phase| phase.duration_ns as f64);
    for class in &bundle.run.classes {
        let per_s = |sum: u64| measured_ns.map(|ns| sum as f64 * 1e9 / ns);
        let mean = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
        let most = |ns: u64| (class.count > 0).then_some(ns as f64);
        let name = bundle.run.instances.get(class.instance as usize);
        let mut row = vec![
            Cell::text(bundle.run.run_id.clone()),
            Cell::text(bundle.run.name.clone()),
            Cell::text(verdict.verdict.label()),
            Cell::text(class.name.clone()),
            Cell::text(class.group.clone()),
            Cell::text(name.map_or(class.instance.to_string(), |i| i.name.clone())),
            Cell::text(Operation::of(class).word()),
            Cell::maybe(Unit::Elapsed, measured_ns),
            Cell::count(class.count),
            Cell::number(Unit::Size, class.size_bytes as f64),
            Cell::maybe(Unit::Rate, per_s(class.count_within())),
            Cell::maybe(Unit::Bandwidth, per_s(class.bytes_within())),
            Cell::maybe(Unit::Latency, mean(class.latency_ns_sum, class.count)),
            Cell::maybe(Unit::Latency, most(class.latency_ns_max)),
            Cell::maybe(Unit::Latency, mean(class.service_ns_sum, class.served())),
            Cell::maybe(Unit::Latency, most(class.service_ns_max)),
            Cell::count(class.errors),
        ];
        let histogram = bundle.latency.get(&class.name);
        row.extend(QUANTILES.map(|(_, _, quantile)| {
            Cell::maybe(Unit::Latency, histogram.and_then(|h| percentile_ns(h, quantile)))
        }));
        table.rows.push(row);
    }
    table.csv()
}
