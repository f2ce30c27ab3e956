//! The result in the format of `fio --output-format=json`, for tools that read it.
//!
//! Each kind of I/O (`database`, `log`, `maintenance`…) is one job, as if it had its own section in
//! a fio job file. `lat_ns` is the latency from the intended start, `clat_ns` the service time.
//! Unlike fio's own output, the export omits percentiles that have too few samples. Names and units
//! are those of fio 3 (`bw` in KiB/s, `runtime` in milliseconds). The export has the fields that
//! fio-plot needs: `job options` with `rw`, `bs`, `iodepth` and `numjobs`, the deviation of the
//! rate, and the distribution of latency.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_evidence::series::Data;
use plimsoll_judge::figures::measured;
use plimsoll_plan::{Pattern, Workload};
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
    let runtime_ms = measured(bundle).map_or(0, |phase| phase.duration_ns / 1_000_000);
    let direction = |operation: Operation| {
        let kind = kinds.iter().find(|kind| kind.group == group && kind.operation == operation);
        side(bundle, kind)
    };
    json!({
        "jobname": name,
        "groupid": 0,
        "error": i32::from(errors > 0) * 5,
        "eta": 0,
        "elapsed": bundle.run.duration_ns.div_ceil(1_000_000_000),
        "job options": options(bundle, group, name),
        "read": direction(Operation::Read),
        "write": direction(Operation::Write),
        "trim": side(bundle, None),
        "sync": flushes(bundle, kinds, group),
        "job_runtime": runtime_ms,
        "usr_cpu": cpu_percent(bundle, bundle.observed.generator.user_ns),
        "sys_cpu": cpu_percent(bundle, bundle.observed.generator.system_ns),
        "latency_ns": shares(bundle, kinds, group, 1.0, false),
        "latency_us": shares(bundle, kinds, group, 1e3, false),
        "latency_ms": shares(bundle, kinds, group, 1e6, true),
    })
}

/// Returns the options of an equivalent fio job. Options that differ between streams are omitted.
fn options(bundle: &Bundle, group: &str, name: &str) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("name".into(), json!(name));
    let totals =
        |read: bool| bundle.run.sum(|c| c.group == group && c.is_read == read, |c| c.count);
    let (reads, writes) = (totals(true), totals(false));
    let word = |sequential: bool| match (sequential, reads > 0, writes > 0) {
        (true, true, true) => "rw",
        (true, true, false) => "read",
        (true, false, _) => "write",
        (false, true, true) => "randrw",
        (false, true, false) => "randread",
        (false, false, _) => "randwrite",
    };
    let mut put = |name: &str, value: String| options.insert(name.into(), json!(value));
    match &bundle.plan.workload {
        Workload::Matrix(matrix) => {
            let Some(first) = matrix.streams.first() else { return options };
            let is_sequential = |pattern: &Pattern| {
                matches!(pattern, Pattern::Sequential | Pattern::SequentialShared)
            };
            let sequential = is_sequential(&first.pattern);
            if matrix.streams.iter().all(|s| is_sequential(&s.pattern) == sequential) {
                put("rw", word(sequential).into());
            }
            if let [size] = &first.sizes[..]
                && matrix.streams.iter().all(|s| s.sizes == first.sizes)
            {
                put("bs", size.size_bytes.to_string());
            }
            if matrix.streams.iter().all(|s| s.queue_depth == first.queue_depth) {
                put("iodepth", first.queue_depth.to_string());
                let clients: u32 = matrix.streams.iter().map(|s| s.clients).sum();
                put("numjobs", clients.to_string());
            }
        }
        Workload::Mailbox(_) => {
            let threads = bundle.run.engine.threads.max(1);
            let sessions = bundle.run.engine.sessions.max(1);
            let bytes = bundle.run.sum(|c| c.group == group, |c| c.size_bytes);
            put("rw", word(false).into());
            put("bs", bytes.checked_div(reads + writes).unwrap_or(0).to_string());
            put("iodepth", sessions.div_ceil(threads).to_string());
            put("numjobs", threads.to_string());
        }
    }
    options
}

fn cpu_percent(bundle: &Bundle, ns: Option<u64>) -> Value {
    let of = |ns: u64| Some(ns as f64 / measured(bundle)?.duration_ns as f64 * 100.0);
    json!(ns.and_then(of))
}

/// Returns the percentage of operations in each latency range that fio prints for this time unit.
fn shares(bundle: &Bundle, kinds: &[Kind], group: &str, unit: f64, open: bool) -> Value {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let of_group = kinds.iter().filter(|k| k.group == group && k.operation != Operation::Flush);
    let all: Vec<Histogram<u64>> = of_group.filter_map(|k| k.histogram(bundle, false)).collect();
    let count: u64 = all.iter().map(Histogram::len).sum();
    let percent = |from: f64, to: f64| {
        let inside = |h: &Histogram<u64>| {
            let buckets = h.iter_recorded();
            let of = |value: u64| (from..to).contains(&(value as f64));
            buckets
                .filter(|b| of(b.value_iterated_to()))
                .map(|b| b.count_since_last_iteration())
                .sum::<u64>()
        };
        let inside: u64 = all.iter().map(inside).sum();
        inside as f64 / count.max(1) as f64 * 100.0
    };
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

/// Returns the figures of flushes, which fio calls `sync`.
fn flushes(bundle: &Bundle, kinds: &[Kind], group: &str) -> Value {
    let group = if group == "transactional" { "sync" } else { group };
    let is_flush = |kind: &&Kind| kind.group == group && kind.operation == Operation::Flush;
    let kind = kinds.iter().find(is_flush);
    let totals = kind.map(|kind| kind.totals(bundle, None)).unwrap_or_default();
    let lat = kind.and_then(|kind| kind.histogram(bundle, false));
    json!({
        "total_ios": totals.sums.count,
        "lat_ns": statistics(lat.as_ref(), totals.latency_ns_avg(), totals.latency_ns_max),
    })
}

fn side(bundle: &Bundle, kind: Option<&Kind>) -> Value {
    let totals = kind.map(|kind| kind.totals(bundle, None)).unwrap_or_default();
    let measured_ns = measured(bundle).map_or(0, |phase| phase.duration_ns);
    let per_s = |sum: u64| match measured_ns {
        0 => 0.0,
        ns => sum as f64 * 1e9 / ns as f64,
    };
    let bytes_per_s = per_s(totals.sums.bytes_within());
    let lat = kind.and_then(|kind| kind.histogram(bundle, false));
    let clat = kind.and_then(|kind| kind.histogram(bundle, true));
    let runtime_ms = if totals.sums.count > 0 { measured_ns / 1_000_000 } else { 0 };
    let lat_mean = totals.latency_ns_avg();
    let clat_mean = totals.service_ns_avg();
    let (rates, bandwidths) = intervals(bundle, kind);
    json!({
        "io_bytes": totals.sums.size_bytes,
        "io_kbytes": totals.sums.size_bytes / 1_024,
        "bw_bytes": bytes_per_s as u64,
        "bw": (bytes_per_s / 1_024.0) as u64,
        "iops": per_s(totals.sums.count_within()),
        "runtime": runtime_ms,
        "total_ios": totals.sums.count,
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
        "clat_ns": statistics(clat.as_ref(), clat_mean, totals.service_ns_max),
        "lat_ns": statistics(lat.as_ref(), lat_mean, totals.latency_ns_max),
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

fn statistics(histogram: Option<&Histogram<u64>>, mean: Option<f64>, max_ns: u64) -> Value {
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
        "N": histogram.len(),
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
