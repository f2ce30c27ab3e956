//! Table of the requirement's limits and the measured values.

use plimsoll_judge::Verdict;
use plimsoll_judge::verdict::{Check, Quantity};

use super::empty_section;
use crate::document::{Block, Section};
use crate::number::{Unit, group_counts};
use crate::table::{Cell, Column, Table, Tone, Value};

pub(super) fn section(verdict: &Verdict) -> Section {
    if verdict.checks.is_empty() {
        return empty_section();
    }
    Section::brief("checks", "Checks").with(Block::Table(table(&verdict.checks)))
}

pub(crate) fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("check", "check"),
            Column::numbers("limit", "limit"),
            Column::numbers("measured", "measured"),
            Column::numbers("95 % interval", "interval").rank(1),
            Column::words("result", "result"),
            Column::remarks("remark", "remark"),
        ],
    );
    table.rows = checks.iter().map(row).collect();
    if checks.iter().all(|check| check.interval.is_none()) {
        drop_column(&mut table, "interval");
    }
    table
}

fn drop_column(table: &mut Table, key: &str) {
    let Some(at) = table.columns.iter().position(|column| column.key == key) else { return };
    table.columns.remove(at);
    for row in table.rows.iter_mut().chain(&mut table.totals) {
        row.remove(at);
    }
}

fn row(check: &Check) -> Vec<Cell> {
    let (unit, limit, measured) = match check.quantity {
        Quantity::Latency { limit_ns, measured_ns } => {
            (Unit::Latency, limit_ns as f64, measured_ns.map(|ns| ns as f64))
        }
        Quantity::Rate { limit_per_s, measured_per_s } => (Unit::Rate, limit_per_s, measured_per_s),
        Quantity::Count { limit_count, measured_count } => {
            (Unit::Count, limit_count as f64, measured_count.map(|count| count as f64))
        }
        Quantity::Bandwidth { limit_bytes_per_s, measured_bytes_per_s } => {
            (Unit::Bandwidth, limit_bytes_per_s as f64, measured_bytes_per_s)
        }
        Quantity::Capacity { limit_bytes, measured_bytes } => {
            (Unit::Size, limit_bytes as f64, measured_bytes.map(|bytes| bytes as f64))
        }
    };
    let measured = match measured {
        Some(base) => Cell { value: Value::Against(unit, base, limit), tone: Tone::Strong },
        None => Cell::unknown(),
    };
    let interval = match check.interval {
        Some([low, high]) => Cell { value: Value::Interval(unit, low, high), tone: Tone::Plain },
        None => Cell::empty(),
    };
    let result = match check.ok {
        Some(true) => Cell::text("pass").tone(Tone::Good),
        Some(false) => Cell::text("FAIL").tone(Tone::Bad),
        None => Cell::text("not decided").tone(Tone::Warn),
    };
    vec![
        Cell::text(label(&check.name)),
        Cell { value: Value::Limit(unit, limit, check.at_least), tone: Tone::Plain },
        measured,
        interval,
        result,
        Cell::text(group_counts(&check.note)),
    ]
}

/// Returns the display name of a check: `db_read_latency_avg` is `database read latency, average`.
pub(crate) fn label(name: &str) -> String {
    match name {
        "achieved_iops" => return "achieved I/Os".to_owned(),
        "achieved_metadata_ops" => return "achieved metadata operations".to_owned(),
        "page_fault_stalls" => return "page-fault stalls".to_owned(),
        "checksum_errors" => return "checksum errors".to_owned(),
        "cuts_with_losses" => return "cuts with losses".to_owned(),
        "bandwidth" | "capacity" => return name.to_owned(),
        "trace_rate" => return "rate of the trace".to_owned(),
        "trace_lag_p99" => return "99th percentile of the lag behind the trace".to_owned(),
        "trace_lag_end" => return "lag behind the trace when the trace ends".to_owned(),
        _ => {}
    }
    if let Some((stream, check)) = name.split_once(": ") {
        return format!("{stream}: {}", label(check));
    }
    for window in ["before", "during", "after"] {
        match name.strip_prefix(window).and_then(|rest| rest.strip_prefix('_')) {
            Some("iops") => return format!("{window}: I/Os"),
            Some(check @ ("outage" | "errors" | "recovery")) => {
                return format!("{window}: {check}");
            }
            Some(check) => return format!("{window}: {}", label(check)),
            None => {}
        }
    }
    let (what, statistic) = name.rsplit_once('_').unwrap_or((name, ""));
    let statistic = match statistic {
        "avg" => "average",
        "max" => "maximum",
        "p999" => "p99.9",
        "p9999" => "p99.99",
        other => other,
    };
    let what = match what.strip_prefix("db_") {
        Some(rest) => format!("database {rest}"),
        None => what.to_owned(),
    };
    format!("{}, {statistic}", what.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        assert_eq!(label("db_read_latency_avg"), "database read latency, average");
        assert_eq!(label("log_write_latency_max"), "log write latency, maximum");
        assert_eq!(label("latency_p999"), "latency, p99.9");
        assert_eq!(label("achieved_iops"), "achieved I/Os");
        assert_eq!(label("during_outage"), "during: outage");
        assert_eq!(label("before_read_latency_p99"), "before: read latency, p99");
        assert_eq!(label("database: read_latency_p99"), "database: read latency, p99");
    }
}
