//! fio's JSON (`--output-format=json` or `json+`; fio: HOWTO, stat.c) as evidence.
//!
//! The job is rebuilt from the options that the result repeats and read as `plimsoll plan import`
//! reads one. Latencies are `lat_ns`, from submission to completion; histograms come from the bins of
//! `json+`. What fio saw of the device (`disk_util`) is taken over: sectors since fio 3.36, and
//! before that the device's I/Os times the job's mean transfer.

use std::collections::BTreeSet;

use plimsoll_plan::import_fio;
use serde_json::{Map, Value};

use super::{ForeignError, bundle, class};
use crate::Bundle;
use crate::latency;
use crate::observed::{DeviceTotals, Issuer};
use crate::run::{EndKind, PathEngine};

const NS_PER_MS: u64 = 1_000_000;
const SECTOR_BYTES: u64 = 512;

/// Reads a result. `name` is that of the file.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read(text: &str, name: &str) -> Result<Bundle, ForeignError> {
    let wrong = |says: String| ForeignError(says);
    // Warnings may stand before the JSON.
    let json = text.find('{').map_or(text, |at| &text[at..]);
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let root = match values.next() {
        Some(Ok(root)) => root,
        Some(Err(error)) => return Err(wrong(format!("it is no JSON: {error}"))),
        None => return Err(wrong("it is empty".into())),
    };
    let jobs = root.get("jobs").and_then(Value::as_array).filter(|jobs| !jobs.is_empty());
    let Some(jobs) = jobs.filter(|_| root.get("fio version").is_some()) else {
        return Err(wrong("it is no result of fio: it has no \"fio version\" and \"jobs\"".into()));
    };
    let job_text = job_text(&root, jobs);
    let plan = import_fio(&job_text, name)
        .map_err(|errors| wrong(format!("its job cannot be carried over:\n{errors}")))?
        .plan;
    let duration_ms = jobs.iter().map(job_runtime_ms).max().unwrap_or(0);
    let mut bundle = bundle(name, &job_text, plan.resolve(), duration_ms * NS_PER_MS);
    bundle.run.tool_version = text_at(&root, "fio version").to_owned();
    bundle.run.started_unix_ns = number(&root, "timestamp") as u64 * 1_000_000_000;
    for (index, job) in jobs.iter().enumerate() {
        take_job(&mut bundle, job, index as u32);
    }
    take_options(&mut bundle, &root, jobs);
    take_devices(&mut bundle, &root);
    Ok(bundle)
}

fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

fn text_at<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn options<'v>(value: &'v Value, name: &str) -> Option<&'v Map<String, Value>> {
    value.get(name).and_then(Value::as_object)
}

/// The job file that the options came from. Clones of a job (numjobs) are listed one by one.
fn job_text(root: &Value, jobs: &[Value]) -> String {
    let mut text = String::new();
    let mut section = |name: &str, options: &Map<String, Value>| {
        text.push_str(&format!("[{name}]\n"));
        for (key, value) in options.iter().filter(|(key, _)| *key != "name") {
            match value.as_str() {
                Some(value) if !value.is_empty() => text.push_str(&format!("{key}={value}\n")),
                _ => text.push_str(&format!("{key}\n")),
            }
        }
    };
    if let Some(global) = options(root, "global options") {
        section("global", global);
    }
    let mut named = BTreeSet::new();
    for job in jobs {
        let name = text_at(job, "jobname");
        if named.insert(name)
            && let Some(options) = options(job, "job options")
        {
            section(if name.is_empty() { "job" } else { name }, options);
        }
    }
    text
}

fn job_runtime_ms(job: &Value) -> u64 {
    let sides = ["read", "write"].iter().filter_map(|side| job.get(side));
    let longest = sides.map(|side| number(side, "runtime")).fold(0.0, f64::max);
    // `job_runtime` is summed over the clones of a reported group.
    longest as u64
}

fn take_job(bundle: &mut Bundle, job: &Value, index: u32) {
    let name = format!("job{index}");
    for (side, is_read) in [("read", true), ("write", false)] {
        let Some(side) = job.get(side).filter(|side| number(side, "total_ios") > 0.0) else {
            continue;
        };
        let word = if is_read { "read" } else { "write" };
        let mut totals = class(format!("{name}.{word}"), is_read, index);
        totals.count = number(side, "total_ios") as u64;
        totals.size_bytes = number(side, "io_bytes") as u64;
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
    take_syncs(bundle, job, &name, index);
    let errors = number(job, "error") as i64;
    if errors != 0 {
        bundle.run.end.kind = EndKind::IoError;
        bundle.run.end.says = format!("job {} ended with error {errors}", text_at(job, "jobname"));
    }
    let length_ns = job_runtime_ms(job) * NS_PER_MS;
    // Milliseconds since 1970, fio 3.36 and later.
    if let Some(start_ms) = job.get("job_start").and_then(Value::as_u64) {
        let start_ns = start_ms * NS_PER_MS;
        let issuer = Issuer { name, start_ns, end_ns: start_ns + length_ns };
        bundle.observed.issuers.push(issuer);
    }
}

fn take_syncs(bundle: &mut Bundle, job: &Value, name: &str, index: u32) {
    let Some(sync) = job.get("sync").filter(|sync| number(sync, "total_ios") > 0.0) else { return };
    let mut totals = class(format!("{name}.sync"), false, index);
    totals.group = "upkeep".into();
    totals.count = number(sync, "total_ios") as u64;
    if let Some(lat) = sync.get("lat_ns") {
        totals.latency_ns_sum = (number(lat, "mean") * totals.count as f64) as u64;
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

/// What follows from the options and not from the figures.
fn take_options(bundle: &mut Bundle, root: &Value, jobs: &[Value]) {
    let option = |job: &Value, name: &str| {
        let own = options(job, "job options").and_then(|options| options.get(name));
        let global = || options(root, "global options").and_then(|options| options.get(name));
        own.or_else(global).map(|value| value.as_str().unwrap_or_default().to_owned())
    };
    let on = |job: &Value, name: &str| option(job, name).is_some_and(|value| value != "0");
    let engine = &mut bundle.run.engine;
    engine.kind = option(&jobs[0], "ioengine").unwrap_or_else(|| "psync".into());
    engine.closed_loop = !jobs.iter().any(|job| option(job, "rate_iops").is_some());
    engine.sessions = jobs.len() as u32;
    let clones = |job: &Value| option(job, "numjobs").and_then(|n| n.parse().ok()).unwrap_or(1u32);
    let mut named = BTreeSet::new();
    let of_jobs = jobs.iter().filter(|job| named.insert(text_at(job, "jobname")));
    engine.threads = of_jobs.map(clones).sum();
    for job in jobs {
        let path = option(job, "filename").or_else(|| option(job, "directory"));
        let path = path.unwrap_or_else(|| text_at(job, "jobname").to_owned());
        let direct = on(job, "direct") || option(job, "buffered").is_some_and(|v| v == "0");
        let why = if direct { "" } else { "the job does not ask for direct I/O" };
        if !engine.paths.iter().any(|known| known.path == path) {
            engine.paths.push(PathEngine { path, direct, why: why.into() });
        }
    }
    let writes =
        jobs.iter().any(|job| job.get("write").is_some_and(|w| number(w, "total_ios") > 0.0));
    let refilled = jobs.iter().all(|job| on(job, "refill_buffers") || on(job, "verify"));
    if writes && !refilled {
        bundle.run.counters.insert("buffers_reused".into(), 1);
    }
    if jobs.iter().any(|job| on(job, "zero_buffers")) {
        bundle.observed.workload.zero_share = Some(1.0);
    }
    take_cpu(bundle, jobs);
}

fn take_cpu(bundle: &mut Bundle, jobs: &[Value]) {
    let (mut user, mut system, mut most) = (0.0, 0.0, 0.0f64);
    for job in jobs {
        let time_ns = (job_runtime_ms(job) * NS_PER_MS) as f64;
        let (usr, sys) = (number(job, "usr_cpu") / 100.0, number(job, "sys_cpu") / 100.0);
        user += usr * time_ns;
        system += sys * time_ns;
        most = most.max(usr + sys);
    }
    let generator = &mut bundle.observed.generator;
    generator.user_ns = Some(user as u64);
    generator.system_ns = Some(system as u64);
    generator.busiest_thread_share = Some(most.min(1.0));
}

fn take_devices(bundle: &mut Bundle, root: &Value) {
    let mean = |is_read: bool| {
        let sum = |of: fn(&crate::run::ClassTotals) -> u64| {
            bundle.run.sum(|c| c.is_read == is_read && c.size_bytes > 0, of)
        };
        sum(|c| c.size_bytes) / sum(|c| c.count).max(1)
    };
    let (read, write) = (mean(true), mean(false));
    let disks = root.get("disk_util").and_then(Value::as_array);
    // The first is the one that holds the files; those below it follow.
    let Some(disk) = disks.and_then(|disks| disks.first()) else { return };
    let bytes = |sectors: &str, ios: &str, merges: &str, size: u64| match disk
        .get(sectors)
        .and_then(Value::as_u64)
    {
        Some(sectors) => sectors.saturating_mul(SECTOR_BYTES),
        None => (number(disk, ios) + number(disk, merges)) as u64 * size,
    };
    let totals = DeviceTotals {
        name: text_at(disk, "name").to_owned(),
        top: true,
        reads: number(disk, "read_ios") as u64,
        reads_merged: number(disk, "read_merges") as u64,
        read_bytes: bytes("read_sectors", "read_ios", "read_merges", read),
        writes: number(disk, "write_ios") as u64,
        writes_merged: number(disk, "write_merges") as u64,
        written_bytes: bytes("write_sectors", "write_ios", "write_merges", write),
        ..DeviceTotals::default()
    };
    bundle.observed.devices.push(totals);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const RESULT: &str = r#"fio: a warning
    {"fio version": "fio-3.33", "timestamp": 1700000000,
     "global options": {"ioengine": "libaio", "direct": "1", "runtime": "60"},
     "jobs": [{"jobname": "a", "error": 0, "job_runtime": 60000, "usr_cpu": 5.0, "sys_cpu": 15.0,
       "job options": {"rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x/f", "size": "1g"},
       "read": {"io_bytes": 2457600000, "runtime": 60000, "total_ios": 600000, "short_ios": 0,
         "drop_ios": 0, "lat_ns": {"mean": 799000.0, "max": 9000000},
         "clat_ns": {"bins": {"500000": 300000, "1000000": 300000}}},
       "write": {"total_ios": 0}, "sync": {"total_ios": 0}}],
     "disk_util": [{"name": "sda", "read_ios": 600100, "read_merges": 0, "write_ios": 3}]}"#;

    #[test]
    fn a_result_becomes_evidence_and_nothing_is_added() {
        let bundle = read(RESULT, "result.json").unwrap();
        let class = &bundle.run.classes[0];
        assert_eq!((class.count, class.is_read), (600_000, true));
        assert_eq!(class.latency_ns_sum, 600_000 * 799_000);
        assert_eq!(bundle.latency["job0.read"].len(), 600_000);
        assert_eq!(bundle.run.measure().unwrap().duration_ns, 60_000_000_000);
        assert_eq!(bundle.observed.devices[0].read_bytes, 600_100 * 4096);
        assert!(bundle.run.engine.paths[0].direct);
        assert_eq!(bundle.plan.workload.matrix().unwrap().streams[0].queue_depth, 8);
        assert_eq!(bundle.observed.workload.compressed_share, None);
        assert_eq!(bundle.observed.generator.user_ns, Some(3_000_000_000));
    }

    #[test]
    fn what_is_no_result_says_so() {
        for (text, says) in
            [("", "empty"), ("{", "no JSON"), ("{\"a\": 1}", "no result of fio"), ("x", "no JSON")]
        {
            let error = read(text, "x").unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
