//! Imports the jobs of a result with their operations, latencies, errors and run times.

use serde_json::Value;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::{VERIFY_GROUP, bundle_key};
use plimsoll_evidence::latency;
use plimsoll_evidence::observed::Issuer;
use plimsoll_evidence::run::{ClassTotals, EndKind};
use plimsoll_evidence::tool_result::{Figure, Kind, Part, Stage};

use super::super::class;
use super::{ASYNCHRONOUS, NS_PER_MS, SYNCHRONOUS, engine_of, number, option, text_at};

/// Options because of which a job may have fewer operations in flight than its depth.
const LOWERS_DEPTH: [&str; 9] = [
    "iodepth_low",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "latency_target",
    "serialize_overlap",
    "io_submit_mode",
    "read_iolog",
];

/// Options because of which rate × latency differs from the number of operations in flight. fio
/// counts a flush in addition to its write, and measures verification reads separately. It also
/// resets its counters after a ramp while operations are in flight. The audit's rule
/// ([`crate::fio::json`]) has a tolerance for each of these effects.
const MIXES_COUNTS: [&str; 8] = [
    "fsync",
    "fdatasync",
    "sync_file_range",
    "end_fsync",
    "fsync_on_close",
    "verify",
    "ramp_time",
    "ramp_size",
];

/// Minimum number of operations for each slot of the queue. In a job with fewer operations, the
/// start and the end of the job dominate its figures.
const ROUNDS_MIN: u64 = 10;

/// Returns the run time of a job, which is the longest run time of its directions. `job_runtime`
/// cannot be used, because it is the sum over the clones of a group.
pub(super) fn runtime_ms(job: &Value) -> u64 {
    let sides = ["read", "write", "trim"].iter().filter_map(|side| job.get(side));
    sides.map(|side| number(side, "runtime")).fold(0.0, f64::max) as u64
}

fn first(figures: &[Figure]) -> f64 {
    figures.first().map_or(0.0, |figure| figure.value)
}

/// Imports a job as operation classes of a separate instance. `part` contains the figures of the
/// job that the audit read.
pub(super) fn take(bundle: &mut Bundle, root: &Value, jobs: &[Value], index: usize, part: &Part) {
    let (job, instance) = (&jobs[index], index as u32);
    let name = format!("job{index}");
    for operation in &part.operations {
        let (word, is_read) = match operation.kind {
            Kind::Read => ("read", true),
            Kind::Write => ("write", false),
            Kind::Trim => ("trim", false),
            Kind::Sync => ("sync", false),
            _ => continue,
        };
        let mut totals = class(format!("{name}.{word}"), is_read, instance);
        totals.count = first(&operation.count) as u64;
        if totals.count == 0 {
            continue;
        }
        if matches!(operation.kind, Kind::Trim | Kind::Sync) {
            totals.group = "upkeep".into();
        } else {
            totals.size_bytes = first(&operation.bytes) as u64;
        }
        if let Some(total) = operation.latencies.iter().find(|l| l.stage == Stage::Total) {
            let mean_ns = total.mean_ns.as_ref().map_or(0.0, |mean| mean.value);
            totals.latency_ns_sum = (mean_ns * totals.count as f64) as u64;
            totals.latency_ns_max = total.max_ns.as_ref().map_or(0, |max| max.value as u64);
        }
        let side = job.get(word).unwrap_or(&Value::Null);
        // fio also counts each flush as a short transfer.
        let moved = operation.size_bytes.as_ref().map(|size| size.value * totals.count as f64);
        let whole = moved.is_some_and(|bytes| bytes <= totals.size_bytes as f64);
        let short = if whole { 0.0 } else { number(side, "short_ios") };
        totals.errors = (short + number(side, "drop_ios")) as u64;
        let is_measured = operation.latencies.iter().any(|l| l.stage != Stage::Submission);
        if let Some(histogram) = histogram(side).filter(|_| word != "sync" && is_measured) {
            bundle.latency.insert(totals.name.clone(), histogram);
        }
        let verified = if word == "read" { verified(root, job, part) } else { 0 };
        let classes = without_checks(totals, verified);
        // A distribution is not used if it includes operations that are not in the class.
        if verified > 0 {
            bundle.latency.remove(&format!("{name}.read"));
        }
        bundle.run.classes.extend(classes);
    }
    let length_ns = runtime_ms(job).saturating_mul(NS_PER_MS);
    let counters = &mut bundle.run.counters;
    counters.insert(bundle_key::runtime_ns(instance), length_ns);
    let operations: f64 = part.operations.iter().map(|o| first(&o.count)).sum();
    let lasts = |outstanding: &u64| operations >= (outstanding.saturating_mul(ROUNDS_MIN)) as f64;
    if let Some(outstanding) = outstanding(root, jobs, job).filter(lasts) {
        counters.insert(bundle_key::outstanding(instance), outstanding);
    }
    // The time is in milliseconds since 1970. fio prints it since version 3.36.
    if let Some(start_ms) = job.get("job_start").and_then(Value::as_u64) {
        let start_ns = start_ms.saturating_mul(NS_PER_MS);
        let issuer = Issuer { name, start_ns, end_ns: start_ns.saturating_add(length_ns) };
        bundle.observed.issuers.push(issuer);
    }
}

/// Returns the number of reads that verify writes. These are the reads that exceed the share in the
/// mix, but at most one for each write. A job may end before it has verified all writes.
fn verified(root: &Value, job: &Value, part: &Part) -> u64 {
    if option(root, job, "verify").is_none_or(|kind| kind == "0" || kind == "null") {
        return 0;
    }
    let count = |kind: Kind| {
        let operation = part.operations.iter().find(|operation| operation.kind == kind);
        operation.map_or(0.0, |operation| first(&operation.count))
    };
    let (reads, writes) = (count(Kind::Read), count(Kind::Write));
    let share = part.setting.read_percent.as_ref().map_or(0.0, |percent| percent.value / 100.0);
    let planned = if share < 1.0 { writes * share / (1.0 - share) } else { reads };
    (reads - planned).min(writes).max(0.0) as u64
}

/// Separates verification reads from the reads of the workload.
fn without_checks(reads: ClassTotals, checks: u64) -> Vec<ClassTotals> {
    let checks = checks.min(reads.count);
    if checks == 0 {
        return vec![reads];
    }
    let share = checks as f64 / reads.count as f64;
    let part = |of: u64| (of as f64 * share) as u64;
    let checking = ClassTotals {
        name: format!("{}.verify", reads.name),
        group: VERIFY_GROUP.into(),
        count: checks,
        size_bytes: part(reads.size_bytes),
        latency_ns_sum: part(reads.latency_ns_sum),
        errors: 0,
        ..reads.clone()
    };
    let rest = ClassTotals {
        count: reads.count - checks,
        size_bytes: reads.size_bytes - checking.size_bytes,
        latency_ns_sum: reads.latency_ns_sum - checking.latency_ns_sum,
        ..reads
    };
    [rest, checking].into_iter().filter(|class| class.count > 0).collect()
}

/// Imports the end of a job. With `continue_on_error`, a job continues after an error and counts
/// the failures.
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

/// Returns the number of operations that a job has in flight, or `None` if the options do not
/// determine it.
fn outstanding(root: &Value, jobs: &[Value], job: &Value) -> Option<u64> {
    let has = |name: &&str| option(root, job, name).is_some();
    if LOWERS_DEPTH.iter().chain(&MIXES_COUNTS).any(has) {
        return None;
    }
    let whole = |name: &str| match option(root, job, name) {
        Some(text) => text.trim().parse::<u64>().ok(),
        None => Some(1),
    };
    let engine = engine_of(root, job);
    let depth = if SYNCHRONOUS.contains(&engine.as_str()) {
        1
    } else if engine == "io_uring" {
        // fio rounds the depth up to a power of two, and prints the result.
        let stated = whole("iodepth")?;
        let ring = stated.checked_next_power_of_two()?;
        (number(job, "latency_depth") as u64).clamp(stated, ring)
    } else if ASYNCHRONOUS.contains(&engine.as_str()) {
        whole("iodepth")?
    } else {
        return None;
    };
    // fio lists each clone of a job or, with `group_reporting`, one entry for all clones.
    let clones = whole("numjobs")?;
    let same = |other: &&Value| text_at(other, "jobname") == text_at(job, "jobname");
    let listed = jobs.iter().filter(same).count() as u64;
    match listed {
        1 => depth.checked_mul(clones),
        listed if listed == clones => Some(depth),
        _ => None,
    }
}

/// Reads the bins of `json+`. It uses the bins of `lat_ns` or, if these are absent, the bins of
/// `clat_ns`, which excludes the submission.
fn histogram(side: &Value) -> Option<hdrhistogram::Histogram<u64>> {
    let bins = ["lat_ns", "clat_ns"].iter().find_map(|name| side.get(name)?.get("bins"));
    let mut histogram = latency::histogram();
    for (value, count) in bins?.as_object()? {
        let (ns, count) = (value.parse::<u64>().ok()?, count.as_u64()?);
        histogram.record_n(ns.clamp(1, latency::LATENCY_NS_MAX), count).ok()?;
    }
    (!histogram.is_empty()).then_some(histogram)
}
