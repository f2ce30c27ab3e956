//! The result in the form of `fio --output-format=json`, for tools that read that.
//!
//! One job for each kind of I/O of a run (`database`, `log`, `maintenance`…), as a fio job file with
//! one section each would leave it. `lat_ns` is the latency from the intended start, `clat_ns` the
//! service time; percentiles are those that have enough samples, so fewer than fio prints. Names and
//! units are those of fio 3 (`bw` in KiB/s, `runtime` in milliseconds).

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_judge::figures::measured;
use serde_json::{Map, Value, json};

use crate::run::distribution::percentile_ns;
use crate::run::kinds::{Kind, Operation, kinds};

/// Percentiles that fio prints by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The result in fio's JSON.
pub fn json(bundle: &Bundle) -> Value {
    let run = &bundle.run;
    let kinds = kinds(bundle);
    let mut groups: Vec<&str> = Vec::new();
    for kind in &kinds {
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
    let classes = || bundle.run.classes.iter().filter(|class| class.group == group);
    let errors: u64 = classes().map(|class| class.errors).sum();
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
        "job options": { "name": name },
        "read": direction(Operation::Read),
        "write": direction(Operation::Write),
        "trim": side(bundle, None),
        "sync": flushes(bundle, kinds, group),
        "job_runtime": runtime_ms,
    })
}

/// Flushes, which fio reports as `sync`.
fn flushes(bundle: &Bundle, kinds: &[Kind], group: &str) -> Value {
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
        "clat_ns": statistics(clat.as_ref(), clat_mean, totals.service_ns_max),
        "lat_ns": statistics(lat.as_ref(), lat_mean, totals.latency_ns_max),
    })
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
