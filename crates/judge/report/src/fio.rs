//! The result in the format of `fio --output-format=json`, for tools that read it.
//!
//! Each kind of I/O (`database`, `log`, `maintenance`…) is one job, as if it had its own section in
//! a fio job file. `lat_ns` is the latency from the intended start, `clat_ns` the service time.
//! As in fio, rates are numbers divided by `runtime`, and the fixed ranges (`latency_us`) contain
//! completion latencies. Unlike fio's own output, the export omits percentiles that have too few
//! samples. Names and units are those of fio 3 (`bw` in KiB/s, `runtime` in milliseconds). The
//! export has the fields that fio-plot needs: `job options` with `rw`, `bs`, `iodepth` and
//! `numjobs`, the deviation of the rate, and the distribution of latency.

mod options;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_evidence::series::Data;
use plimsoll_judge::figures::measured;
use serde_json::{Map, Value, json};

use crate::run::distribution::percentile_ns;
use crate::run::kinds::{Kind, Operation, kinds};

/// Percentiles that fio prints by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Returns the result as fio's JSON.
pub fn json(bundle: &Bundle) -> Value {
    let run = &bundle.run;
    let kinds = kinds(bundle);
    let mut groups: Vec<&str> = Vec::new();
    // As in fio, flushes are listed in the job that wrote the data, but with separate figures.
    for kind in kinds
        .iter()
        .filter(|kind| !matches!(kind.group.as_str(), "sync" | "durable" | "first_byte"))
    {
        if !groups.contains(&kind.group.as_str()) {
            groups.push(&kind.group);
        }
    }
    let jobs: Vec<Value> = groups.into_iter().map(|group| job(bundle, &kinds, group)).collect();
    json!({
        "fio version": format!("plimsoll-{}", run.tool_version),
        "timestamp": run.started_unix_ns.saturating_add(run.duration_ns) / 1_000_000_000,
        "timestamp_ms": run.started_unix_ns.saturating_add(run.duration_ns) / 1_000_000,
        "global options": {},
        "jobs": jobs,
        "disk_util": disk_util(bundle),
    })
}

fn job(bundle: &Bundle, kinds: &[Kind], group: &str) -> Value {
    let name = match group {
        "transactional" if bundle.plan.workload.mailbox().is_some() => "database",
        "transactional" => &bundle.run.name,
        other => other,
    };
    let is_main = group == "transactional";
    let belongs = |class: &&ClassTotals| class.group == group || is_main && class.group == "sync";
    let errors: u64 = bundle.run.classes.iter().filter(belongs).map(|class| class.errors).sum();
    // fio's total of all clones, of which CPU times are a share (fio: stat.c).
    let clients = options::clients(bundle, group);
    let runtime_ms = runtime_ms(bundle).saturating_mul(clients);
    let direction = |operation: Operation| {
        let kind = kinds.iter().find(|kind| kind.group == group && kind.operation == operation);
        side(bundle, kind)
    };
    let shares = Shares::of(bundle, kinds, group);
    json!({
        "jobname": name,
        "groupid": 0,
        "error": i32::from(errors > 0) * 5,
        "eta": 0,
        "elapsed": bundle.run.duration_ns.div_ceil(1_000_000_000),
        "job options": options::options(bundle, group, name),
        "read": direction(Operation::Read),
        "write": direction(Operation::Write),
        "trim": side(bundle, None),
        "sync": flushes(bundle, kinds, group),
        "job_runtime": runtime_ms,
        "latency_depth": options::depth(bundle, group),
        "usr_cpu": cpu_percent(bundle.observed.generator.user_ns, runtime_ms),
        "sys_cpu": cpu_percent(bundle.observed.generator.system_ns, runtime_ms),
        "latency_ns": shares.of_unit(1.0, false),
        "latency_us": shares.of_unit(1e3, false),
        "latency_ms": shares.of_unit(1e6, true),
    })
}

fn cpu_percent(ns: Option<u64>, runtime_ms: u64) -> Value {
    let of = |ns: u64| (runtime_ms > 0).then(|| ns as f64 / 1e6 / runtime_ms as f64 * 100.0);
    json!(ns.and_then(of))
}

/// Service times of all reads and writes of a group, with their numbers. fio fills its fixed ranges
/// with the completion latencies (io_u.c, account_io_completion).
struct Shares {
    buckets: Vec<(u64, u64)>,
}

impl Shares {
    fn of(bundle: &Bundle, kinds: &[Kind], group: &str) -> Self {
        let mut buckets = Vec::new();
        let of_group = |kind: &&Kind| kind.group == group && kind.operation != Operation::Flush;
        for kind in kinds.iter().filter(of_group) {
            let Some(histogram) = kind.histogram(bundle, true) else { continue };
            let max_ns = kind.totals(bundle, None).service_ns_max;
            // A bucket that includes a limit of a range belongs to the range of its lower end, as
            // the printed minimum does. The exact maximum is known.
            buckets.extend(histogram.iter_recorded().map(|bucket| {
                let highest_ns = bucket.value_iterated_to();
                let ns = match highest_ns >= max_ns {
                    true => max_ns,
                    false => histogram.lowest_equivalent(highest_ns),
                };
                (ns, bucket.count_since_last_iteration())
            }));
        }
        Self { buckets }
    }

    /// Returns the percentage of operations in each range that fio prints for this time unit.
    fn of_unit(&self, unit: f64, open: bool) -> Value {
        const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
        let count = |of: &dyn Fn(f64) -> bool| -> u64 {
            self.buckets.iter().filter(|(ns, _)| of(*ns as f64)).map(|(_, count)| count).sum()
        };
        let all = count(&|_| true).max(1);
        let percent =
            |from: f64, to: f64| count(&|ns| (from..to).contains(&ns)) as f64 / all as f64 * 100.0;
        let mut shares = Map::new();
        let mut from = if unit > 1.0 { unit } else { 0.0 };
        for step in STEPS {
            let to = step as f64 * unit;
            shares.insert(step.to_string(), json!(percent(from, to)));
            from = to;
        }
        if open {
            shares.insert("2000".into(), json!(percent(from, 2000.0 * unit)));
            shares.insert(">=2000".into(), json!(percent(2000.0 * unit, f64::INFINITY)));
        }
        json!(shares)
    }
}

/// Returns the length of the measured phase in fio's resolution of 1 ms. A shorter phase counts as
/// 1 ms.
fn runtime_ms(bundle: &Bundle) -> u64 {
    let rounded = |ns: u64| ((ns.saturating_add(500_000)) / 1_000_000).max(1);
    measured(bundle).map_or(0, |phase| rounded(phase.duration_ns))
}

/// Divides a number by the run time that the export states, as fio does.
fn per_runtime_s(bundle: &Bundle, sum: u64) -> f64 {
    match runtime_ms(bundle) {
        0 => 0.0,
        ms => sum as f64 * 1e3 / ms as f64,
    }
}

/// Returns the figures of flushes, which fio calls `sync`.
fn flushes(bundle: &Bundle, kinds: &[Kind], group: &str) -> Value {
    let group = if group == "transactional" { "sync" } else { group };
    let is_flush = |kind: &&Kind| kind.group == group && kind.operation == Operation::Flush;
    let kind = kinds.iter().find(is_flush);
    let totals = kind.map(|kind| kind.totals(bundle, None)).unwrap_or_default();
    let lat = kind.and_then(|kind| kind.histogram(bundle, false));
    json!({
        "total_ios": totals.sums.count,
        "lat_ns": statistics(lat.as_ref(), totals.sums.count, totals.latency_ns_avg(), totals.latency_ns_max),
    })
}

fn side(bundle: &Bundle, kind: Option<&Kind>) -> Value {
    let totals = kind.map(|kind| kind.totals(bundle, None)).unwrap_or_default();
    // Plimsoll's rates do not include operations that completed after the measured phase, but its
    // latencies do. In fio, a rate is the printed number divided by the printed time.
    let (count, bytes) = (totals.sums.count_within(), totals.sums.bytes_within());
    let bytes_per_s = per_runtime_s(bundle, bytes);
    let lat = kind.and_then(|kind| kind.histogram(bundle, false));
    let clat = kind.and_then(|kind| kind.histogram(bundle, true));
    let runtime_ms = if count > 0 { runtime_ms(bundle) } else { 0 };
    let lat_mean = totals.latency_ns_avg();
    let clat_mean = totals.service_ns_avg();
    let (rates, bandwidths) = intervals(bundle, kind);
    json!({
        "io_bytes": bytes,
        "io_kbytes": bytes / 1_024,
        "bw_bytes": bytes_per_s as u64,
        "bw": (bytes_per_s / 1_024.0) as u64,
        "iops": per_runtime_s(bundle, count),
        "runtime": runtime_ms,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "iops_min": least(&rates),
        "iops_max": greatest(&rates),
        "iops_mean": mean(&rates),
        "iops_stddev": deviation(&rates),
        "iops_samples": rates.len(),
        "bw_min": least(&bandwidths) / 1_024.0,
        "bw_max": greatest(&bandwidths) / 1_024.0,
        "bw_mean": mean(&bandwidths) / 1_024.0,
        "bw_dev": deviation(&bandwidths) / 1_024.0,
        "bw_samples": bandwidths.len(),
        "clat_ns": statistics(clat.as_ref(), count, clat_mean, totals.service_ns_max),
        "lat_ns": statistics(lat.as_ref(), count, lat_mean, totals.latency_ns_max),
    })
}

/// Returns the rate and bandwidth of each interval of the measured phase.
fn intervals(bundle: &Bundle, kind: Option<&Kind>) -> (Vec<f64>, Vec<f64>) {
    let (Some(kind), Some(phase)) = (kind, measured(bundle)) else { return Default::default() };
    let of = |name: &str| {
        let class = bundle.run.class(name);
        class.is_some_and(|c| c.group == kind.group && Operation::of(c) == kind.operation)
    };
    let within = phase.start_ns..phase.start_ns + phase.duration_ns;
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for row in bundle.series.iter().filter(|row| within.contains(&row.start_ns) && of(&row.name)) {
        if let (Data::Class { count, bytes, .. }, true) = (row.data, row.duration_ns > 0) {
            let seconds = row.duration_ns as f64 / 1e9;
            let sum = sums.entry(row.start_ns).or_default();
            *sum = (sum.0 + count as f64 / seconds, sum.1 + bytes as f64 / seconds);
        }
    }
    sums.into_values().unzip()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation of a sample (divisor n − 1), as fio computes it.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len().saturating_sub(1)).max(1) as f64).sqrt()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::max).unwrap_or(0.0)
}

/// Returns the latencies of `count` operations. The latencies also include operations that completed
/// after the measured phase, but in fio, `N` is the number of operations that the result states.
fn statistics(
    histogram: Option<&Histogram<u64>>,
    count: u64,
    mean: Option<f64>,
    max_ns: u64,
) -> Value {
    let Some(histogram) = histogram else {
        return json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 });
    };
    let mut percentiles = Map::new();
    for percentile in PERCENTILES {
        if let Some(ns) = percentile_ns(histogram, percentile / 100.0) {
            percentiles.insert(format!("{percentile:.6}"), json!(ns as u64));
        }
    }
    json!({
        "min": histogram.min(),
        "max": max_ns,
        "mean": mean.unwrap_or(0.0),
        "stddev": histogram.stdev(),
        "N": count,
        "percentile": percentiles,
    })
}

fn disk_util(bundle: &Bundle) -> Vec<Value> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    bundle
        .observed
        .devices
        .iter()
        .map(|device| {
            json!({
                "name": device.name,
                "read_ios": device.reads,
                "write_ios": device.writes,
                "read_sectors": device.read_bytes / 512,
                "write_sectors": device.written_bytes / 512,
                "read_merges": device.reads_merged,
                "write_merges": device.writes_merged,
                "read_ticks": device.read_ns / 1_000_000,
                "write_ticks": device.write_ns / 1_000_000,
                "in_queue": device.queue_ns / 1_000_000,
                "util": (device.busy_ns as f64 / measure.duration_ns as f64 * 100.0).min(100.0),
            })
        })
        .collect()
}
