//! Figures that experiments and comparisons use. Each run has one value of each figure.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Window, Workload};

use crate::events::{self, NoRecovery, Windows};
use crate::figures::{self, Pick};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    PerSecond,
    BytesPerSecond,
    Nanoseconds,
    /// Share between 0 and 1.
    Share,
}

impl FigureUnit {
    /// Clips an interval to possible values: no value is negative, and no share exceeds 1. With few
    /// runs, Student's t can yield an interval that contains impossible values.
    #[must_use]
    pub fn possible(self, [low, high]: [f64; 2]) -> [f64; 2] {
        let most = if self == Self::Share { 1.0 } else { f64::INFINITY };
        [low.max(0.0), high.min(most)]
    }
}

#[derive(Clone, Copy)]
pub struct Figure {
    /// Key in JSON and CSV, with the unit.
    pub key: &'static str,
    /// Display name.
    pub name: &'static str,
    pub unit: FigureUnit,
    /// True if higher values are better.
    pub higher_is_better: bool,
    /// Dependence of the figure on the speed of one CPU core, all else being equal.
    pub by_cpu: ByCpu,
    /// Function that returns the value in a run; `None` if not measured.
    pub of: fn(&Bundle) -> Option<f64>,
}

/// Dependence of a figure on the speed of one CPU core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByCpu {
    /// The figure grows with the speed of the core.
    Grows,
    /// The figure shrinks with the speed of the core.
    Shrinks,
    /// The dependence is unknown.
    Unknown,
}

/// Throughput, which is the first figure in every comparison.
const RATE: Figure = Figure {
    key: "achieved_iops_per_s",
    name: "achieved I/Os",
    unit: FigureUnit::PerSecond,
    higher_is_better: true,
    by_cpu: ByCpu::Grows,
    of: |bundle| figures::rate_per_s(bundle, Pick::Transactional),
};

const BANDWIDTH: Figure = Figure {
    key: "bandwidth_bytes_per_s",
    name: "bandwidth",
    unit: FigureUnit::BytesPerSecond,
    higher_is_better: true,
    by_cpu: ByCpu::Unknown,
    of: |bundle| figures::bytes_per_s(bundle, Pick::Transactional),
};

const CPU_PER_OP: Figure = Figure {
    key: "cpu_ns_per_op",
    name: "CPU per I/O",
    unit: FigureUnit::Nanoseconds,
    higher_is_better: false,
    by_cpu: ByCpu::Shrinks,
    of: figures::cpu_ns_per_op,
};

const CPU_BUSY: Figure = Figure {
    key: "cpu_busy_share",
    name: "CPU of the host",
    unit: FigureUnit::Share,
    higher_is_better: false,
    by_cpu: ByCpu::Unknown,
    of: |bundle| bundle.observed.cpu.busy_avg,
};

const fn latency(key: &'static str, name: &'static str, of: fn(&Bundle) -> Option<f64>) -> Figure {
    let unit = FigureUnit::Nanoseconds;
    Figure { key, name, unit, higher_is_better: false, by_cpu: ByCpu::Unknown, of }
}

fn mean_ns(bundle: &Bundle, pick: Pick) -> Option<f64> {
    let sums = figures::totals(bundle, figures::latency_pick(bundle, pick));
    (sums.count > 0).then(|| sums.latency_ns as f64 / sums.count as f64)
}

fn p99_ns(bundle: &Bundle, pick: Pick) -> Option<f64> {
    figures::percentile_ns(bundle, figures::latency_pick(bundle, pick), 0.99).map(|ns| ns as f64)
}

const READS: Pick = Pick::DatabaseReads(None);
const FIRST_BYTES: Pick = Pick::FirstBytes(None);
const WRITES: Pick = Pick::DatabaseWrites(None);

/// Figures of the windows around the events of a plan, without the streams that start at events. A
/// time that is shorter than an interval of the series is set to one interval, so that a ratio can
/// be computed.
const BEFORE_RATE: Figure =
    window_rate("before_iops_per_s", "rate before the event", |b| rate_of(b, Window::Before));
const BEFORE_P99: Figure =
    latency("before_latency_ns_p99", "p99 before the event", |b| p99_of(b, Window::Before));
const DURING_RATE: Figure =
    window_rate("during_iops_per_s", "rate during the event", |b| rate_of(b, Window::During));
const DURING_P99: Figure =
    latency("during_latency_ns_p99", "p99 during the event", |b| p99_of(b, Window::During));
const AFTER_RATE: Figure =
    window_rate("after_iops_per_s", "rate after the recovery", |b| rate_of(b, Window::After));
const AFTER_P99: Figure =
    latency("after_latency_ns_p99", "p99 after the recovery", |b| p99_of(b, Window::After));
const OUTAGE: Figure = latency("outage_ns", "longest outage", |bundle| {
    let windows = Windows::of(bundle)?;
    let outage = events::outage(bundle, windows.part(Window::During)?)?;
    let interval_ns = (outage.high_ns - outage.low_ns) / 2;
    Some(outage.duration_ns.max(interval_ns) as f64)
});
/// Recovery time. If the run ended before the recovery, the value is the time until its end, which
/// is a lower bound.
const RECOVERY: Figure = latency("recovery_ns", "recovery time", |bundle| {
    let windows = Windows::of(bundle)?;
    match windows.recovery_ns {
        Ok(ns) | Err(NoRecovery::NotWithinRun(ns)) => Some(ns.max(windows.interval_ns) as f64),
        Err(NoRecovery::Unknown(_)) => None,
    }
});

const fn window_rate(
    key: &'static str,
    name: &'static str,
    of: fn(&Bundle) -> Option<f64>,
) -> Figure {
    let unit = FigureUnit::PerSecond;
    Figure { key, name, unit, higher_is_better: true, by_cpu: ByCpu::Unknown, of }
}

fn rate_of(bundle: &Bundle, window: Window) -> Option<f64> {
    figures::rate_per_s(&events::slice_window(bundle, window)?, Pick::Transactional)
}

fn p99_of(bundle: &Bundle, window: Window) -> Option<f64> {
    p99_ns(&events::slice_window(bundle, window)?, Pick::Transactional)
}

const MAILBOX: &[Figure] = &[
    RATE,
    latency("db_read_latency_ns_avg", "database read, average", |b| mean_ns(b, READS)),
    latency("db_read_latency_ns_p99", "database read, p99", |b| p99_ns(b, READS)),
    latency("db_write_latency_ns_avg", "database write, average", |b| mean_ns(b, WRITES)),
    latency("log_write_latency_ns_avg", "log write, average", |b| {
        mean_ns(b, Pick::LogWrites(None))
    }),
    BEFORE_RATE,
    BEFORE_P99,
    DURING_RATE,
    DURING_P99,
    OUTAGE,
    RECOVERY,
    AFTER_RATE,
    AFTER_P99,
    CPU_PER_OP,
    CPU_BUSY,
];

const MATRIX: &[Figure] = &[
    RATE,
    BANDWIDTH,
    latency("latency_ns_avg", "latency, average", |b| mean_ns(b, Pick::Transactional)),
    latency("latency_ns_p99", "latency, p99", |b| p99_ns(b, Pick::Transactional)),
    latency("read_latency_ns_avg", "read, average", |b| mean_ns(b, READS)),
    latency("read_latency_ns_p99", "read, p99", |b| p99_ns(b, READS)),
    latency("first_byte_latency_ns_avg", "first byte, average", |b| mean_ns(b, FIRST_BYTES)),
    latency("first_byte_latency_ns_p99", "first byte, p99", |b| p99_ns(b, FIRST_BYTES)),
    latency("write_latency_ns_avg", "write, average", |b| mean_ns(b, WRITES)),
    latency("write_latency_ns_p99", "write, p99", |b| p99_ns(b, WRITES)),
    BEFORE_RATE,
    BEFORE_P99,
    DURING_RATE,
    DURING_P99,
    OUTAGE,
    RECOVERY,
    AFTER_RATE,
    AFTER_P99,
    CPU_PER_OP,
    CPU_BUSY,
];

/// Returns the figures of a workload. Reports may skip figures that no run measured.
pub fn of(workload: &Workload) -> &'static [Figure] {
    match workload {
        Workload::Mailbox(_) => MAILBOX,
        Workload::Matrix(_) => MATRIX,
    }
}

/// Returns the figures of all workloads. A key can occur twice.
pub fn all() -> impl Iterator<Item = &'static Figure> {
    MAILBOX.iter().chain(MATRIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ends_where_its_figure_does() {
        assert_eq!(FigureUnit::Share.possible([-0.033, 1.11]), [0.0, 1.0]);
        assert_eq!(FigureUnit::PerSecond.possible([-5.0, 90.0]), [0.0, 90.0]);
    }
}
