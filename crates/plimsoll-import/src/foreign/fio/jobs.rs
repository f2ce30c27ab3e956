//! The jobs of a result: operations, latencies, errors, and how long each ran.

use serde_json::Value;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::bundle_key;
use plimsoll_evidence::latency;
use plimsoll_evidence::observed::Issuer;
use plimsoll_evidence::run::EndKind;

use super::super::class;
use super::{ASYNCHRONOUS, NS_PER_MS, SYNCHRONOUS, engine_of, number, option, text_at};

/// Options with which a queue is not kept at its depth.
const LOWERS_DEPTH: [&str; 7] = [
    "iodepth_low",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "latency_target",
    "serialize_overlap",
];

/// How long a job ran: the longest of its sides. `job_runtime` is summed over the clones of a group.
pub(super) fn runtime_ms(job: &Value) -> u64 {
    let sides = ["read", "write", "trim"].iter().filter_map(|side| job.get(side));
    sides.map(|side| number(side, "runtime")).fold(0.0, f64::max) as u64
}

/// Takes a job over as classes of an instance of its own.
pub(super) fn take(bundle: &mut Bundle, root: &Value, jobs: &[Value], index: usize) {
    let (job, instance) = (&jobs[index], index as u32);
    let name = format!("job{index}");
    for (word, is_read) in [("read", true), ("write", false), ("trim", false)] {
        let Some(side) = job.get(word).filter(|side| number(side, "total_ios") > 0.0) else {
            continue;
        };
        let mut totals = class(format!("{name}.{word}"), is_read, instance);
        totals.count = number(side, "total_ios") as u64;
        if word == "trim" {
            totals.group = "upkeep".into();
        } else {
            totals.size_bytes = number(side, "io_bytes") as u64;
        }
        if let Some(lat) = side.get("lat_ns") {
            totals.latency_ns_sum = (number(lat, "mean") * totals.count as f64) as u64;
            totals.latency_ns_max = number(lat, "max") as u64;
        }
        totals.errors = (number(side, "short_ios") + number(side, "drop_ios")) as u64;
        if let Some(histogram) = histogram(side) {
            bundle.latency.insert(totals.name.clone(), histogram);
        }
        bundle.run.classes.push(totals);
    }
    take_syncs(bundle, job, &name, instance);
    let length_ns = runtime_ms(job).saturating_mul(NS_PER_MS);
    let counters = &mut bundle.run.counters;
    counters.insert(bundle_key::runtime_ns(instance), length_ns);
    if let Some(outstanding) = outstanding(root, jobs, job) {
        counters.insert(bundle_key::outstanding(instance), outstanding);
    }
    // Milliseconds since 1970, fio 3.36 and later.
    if let Some(start_ms) = job.get("job_start").and_then(Value::as_u64) {
        let start_ns = start_ms.saturating_mul(NS_PER_MS);
        let issuer = Issuer { name, start_ns, end_ns: start_ns.saturating_add(length_ns) };
        bundle.observed.issuers.push(issuer);
    }
}

/// How a job ended. With `continue_on_error` it goes on, and counts what failed.
pub(super) fn take_error(bundle: &mut Bundle, job: &Value) {
    let name = text_at(job, "jobname");
    let failed = number(job, "total_err") as u64;
    if let Some(last) = bundle.run.classes.last_mut() {
        last.errors += failed;
    }
    let error = number(job, "error") as i64;
    if error != 0 || failed > 0 && bundle.run.classes.is_empty() {
        bundle.run.end.kind = EndKind::IoError;
        bundle.run.end.says = match failed {
            0 => format!("job {name} ended with error {error}"),
            failed => format!("job {name} ended with error {error} after {failed} failed I/Os"),
        };
    }
}

/// Operations that a job keeps in flight; `None` where its options leave that open.
fn outstanding(root: &Value, jobs: &[Value], job: &Value) -> Option<u64> {
    let has = |name: &&str| option(root, job, name).is_some();
    if LOWERS_DEPTH.iter().any(has) {
        return None;
    }
    let whole = |name: &str| match option(root, job, name) {
        Some(text) => text.trim().parse::<u64>().ok(),
        None => Some(1),
    };
    let engine = engine_of(root, job);
    let depth = if SYNCHRONOUS.contains(&engine.as_str()) {
        1
    } else if ASYNCHRONOUS.contains(&engine.as_str()) {
        whole("iodepth")?
    } else {
        return None;
    };
    // The clones of a job are listed one by one, or all together with `group_reporting`.
    let clones = whole("numjobs")?;
    let same = |other: &&Value| text_at(other, "jobname") == text_at(job, "jobname");
    let listed = jobs.iter().filter(same).count() as u64;
    match listed {
        1 => depth.checked_mul(clones),
        listed if listed == clones => Some(depth),
        _ => None,
    }
}

/// Flushes. Their number is `total_ios` of some versions, and the samples of their latency of others.
fn take_syncs(bundle: &mut Bundle, job: &Value, name: &str, index: u32) {
    let Some(sync) = job.get("sync") else { return };
    let samples = sync.get("lat_ns").map_or(0.0, |lat| number(lat, "N"));
    let count = number(sync, "total_ios").max(samples) as u64;
    if count == 0 {
        return;
    }
    let mut totals = class(format!("{name}.sync"), false, index);
    totals.group = "upkeep".into();
    totals.count = count;
    if let Some(lat) = sync.get("lat_ns") {
        totals.latency_ns_sum = (number(lat, "mean") * totals.count as f64) as u64;
        totals.latency_ns_max = number(lat, "max") as u64;
    }
    bundle.run.classes.push(totals);
}

/// The bins of `json+`: of `lat_ns` where asked for, else of `clat_ns`, which leaves the submission out.
fn histogram(side: &Value) -> Option<hdrhistogram::Histogram<u64>> {
    let bins = ["lat_ns", "clat_ns"].iter().find_map(|name| side.get(name)?.get("bins"));
    let mut histogram = latency::histogram();
    for (value, count) in bins?.as_object()? {
        let (ns, count) = (value.parse::<u64>().ok()?, count.as_u64()?);
        histogram.record_n(ns.clamp(1, latency::LATENCY_NS_MAX), count).ok()?;
    }
    (!histogram.is_empty()).then_some(histogram)
}
