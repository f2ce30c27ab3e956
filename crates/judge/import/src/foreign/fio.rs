//! Converts fio's JSON (`--output-format=json` or `json+`; fio: HOWTO, stat.c) to evidence.
//!
//! The job is reconstructed from the options in the result, and converted as `plimsoll plan import`
//! does. Latencies are `lat_ns`, from submission to completion. Histograms come from the bins of
//! `json+`. Device statistics (`disk_util`) are used if they contain byte counts.
//!
//! Missing values stay unknown. fio omits options without a value (`refill_buffers`), so an absent
//! option may have been set.

mod devices;
mod jobs;

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::ZERO_BUFFERS;
use plimsoll_evidence::run::PathEngine;
use plimsoll_evidence::tool_result::{Kind, Part};
use serde_json::{Map, Value};

use super::{ForeignError, bundle};
use crate::fio::json::SECTIONS_MERGED;
use crate::fio::options::METADATA;
use crate::fio_job::import_fio;
use crate::json::{self, JsonNode};

const NS_PER_MS: u64 = 1_000_000;

/// Engines that have one operation in flight and ignore the stated depth (fio: HOWTO, I/O engine).
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];
/// Engines that have the stated number of operations in flight, and that use the kernel's block
/// layer.
const ASYNCHRONOUS: [&str; 3] = ["libaio", "io_uring", "posixaio"];
/// Engines that `plimsoll plan import` supports.
const IMPORTED: [&str; 9] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "null"];
/// Options that end a job when its rate is steady.
const STEADY_STATE: [&str; 6] =
    ["steadystate", "steadystate_duration", "steadystate_ramp_time", "ss", "ss_dur", "ss_ramp"];
/// fio's default on Linux.
const DEFAULT_ENGINE: &str = "psync";

/// fio omits the option `stonewall`, which has no value, but starts a new group for it.
const SEVERAL_GROUPS: &str =
    "its jobs are in several groups, which may have run one after another (stonewall)";

/// Reads a result. `name` is the file name.
///
/// # Errors
/// Returns a text with the reason.
pub fn read(text: &str, name: &str) -> Result<Bundle, ForeignError> {
    let wrong = |says: String| ForeignError(says);
    // The audit reads the figures; this function reads only the job.
    if text.trim().is_empty() {
        return Err(wrong("it is empty".into()));
    }
    let mut reports = match crate::fio::json::read_all(text, name) {
        Ok(reports) => reports,
        Err(_) if crate::json::first_object(text).is_ok() => {
            let says = "it is not a fio result: it contains no \"fio version\" or no \"jobs\"";
            return Err(wrong(says.into()));
        }
        Err(says) => return Err(wrong(format!("it is not valid JSON: {says}"))),
    };
    let (Some(figures), true) = (reports.pop(), reports.is_empty()) else {
        return Err(wrong(
            "it contains several results; make the command write only one result".into(),
        ));
    };
    if figures.remarks.iter().any(|remark| remark == SECTIONS_MERGED) {
        return Err(wrong(SECTIONS_MERGED.into()));
    }
    let jobs = figures.parts.iter().filter(|part| !part.is_total);
    let groups: BTreeSet<&Option<String>> = jobs.map(|part| &part.group).collect();
    if groups.len() > 1 {
        return Err(wrong(SEVERAL_GROUPS.into()));
    }
    let kinds = figures.parts.iter().flat_map(|part| &part.operations).map(|o| &o.kind);
    if kinds.into_iter().any(|kind| *kind == Kind::All) {
        let says = "reads and writes have no separate figures (unified_rw_reporting)";
        return Err(wrong(says.into()));
    }
    let (root, range) =
        last_object(text).ok_or_else(|| wrong("it is not a JSON object of fio".into()))?;
    let jobs = root.get("jobs").and_then(Value::as_array).filter(|jobs| !jobs.is_empty());
    let Some(jobs) = jobs.filter(|_| root.get("fio version").is_some()) else {
        return Err(wrong(
            "it is not a fio result: it contains no \"fio version\" or no \"jobs\"".into(),
        ));
    };
    let mut engines = jobs.iter().map(|job| engine_of(&root, job));
    if let Some(engine) = engines.find(|e| METADATA.contains(&e.as_str())) {
        return Err(wrong(format!("its engine {engine} does not read or write data")));
    }
    let job_text = job_text(&text[range]);
    let plan = import_fio(&job_text, name)
        .map_err(|errors| wrong(format!("its job cannot be converted:\n{errors}")))?
        .plan;
    let duration_ms = jobs.iter().map(jobs::runtime_ms).max().unwrap_or(0);
    let mut bundle =
        bundle(name, plan.text(), plan.resolve(), duration_ms.saturating_mul(NS_PER_MS));
    bundle.run.tool_version = text_at(&root, "fio version").to_owned();
    bundle.run.started_unix_ns = number(&root, "timestamp") as u64 * 1_000_000_000;
    for (index, job) in jobs.iter().enumerate() {
        let nothing = Part::default();
        let part = figures.parts.get(index).unwrap_or(&nothing);
        jobs::take(&mut bundle, &root, jobs, index, part);
        jobs::take_error(&mut bundle, job);
    }
    take_options(&mut bundle, &root, jobs);
    devices::take(&mut bundle, &root, jobs);
    Ok(bundle)
}

/// Reads a result whose job cannot be converted. Returns the bytes, the operations and the files
/// that the result lists. Rules that require the job's settings stay unknown.
///
/// # Errors
/// Returns a text with the reason.
pub fn read_figures(text: &str, name: &str) -> Result<Bundle, ForeignError> {
    let mut bundle = super::tool_result::read(text, name, None)?;
    let root = last_object(text).unwrap_or_default().0;
    let jobs = root.get("jobs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if jobs.is_empty() {
        return Err(ForeignError("it is not a JSON object of fio".into()));
    }
    jobs.iter().for_each(|job| jobs::take_error(&mut bundle, job));
    take_options(&mut bundle, &root, jobs);
    bundle.run.engine.closed_loop = false;
    Ok(bundle)
}

/// Returns the last result object in a text, and its position. Warnings and earlier reports of the
/// running job may precede this object.
fn last_object(text: &str) -> Option<(Value, Range<usize>)> {
    let (mut last, mut at) = (None, 0);
    while let Some(start) = text[at..].find('{').map(|found| at + found) {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                if value.get("fio version").is_some() {
                    last = Some((value, start..at));
                }
            }
            // This bracket is part of a warning, not the start of an object.
            _ => at = start + 1,
        }
        if last.is_some() && !text[at..].contains("\"fio version\"") {
            break;
        }
    }
    last
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

/// Returns the job file that corresponds to the options of a result. The order of options matters:
/// the later of `rwmixread` and `rwmixwrite` applies. A result lists each clone of a job
/// (`numjobs`) separately, but the job file contains one section for all clones.
fn job_text(result: &str) -> String {
    let mut text = String::new();
    let Ok((json, _)) = json::parse(result) else { return text };
    let root = JsonNode::root(&json);
    let mut section = |name: &str, options: &JsonNode<'_, '_>| {
        text.push_str(&format!("[{name}]\n"));
        // fio itself decided when the job was steady. The result contains no intervals from which
        // this could be checked.
        let used = |key: &str| key != "name" && !STEADY_STATE.contains(&key);
        let mut has_size = false;
        for (key, value) in options.entries().filter(|(key, _)| used(key)) {
            has_size |= ["bs", "blocksize"].contains(&key);
            match value.text() {
                // On the command line, `kb_base` does not apply to options before it.
                Some(_) if key == "kb_base" && has_size => {}
                // The engine may be replaced with another engine, because the operations do not
                // depend on it.
                Some(engine) if key == "ioengine" && !IMPORTED.contains(&engine) => {
                    text.push_str("ioengine=libaio\n");
                }
                Some(value) if !value.is_empty() => text.push_str(&format!("{key}={value}\n")),
                _ => text.push_str(&format!("{key}\n")),
            }
        }
    };
    let global = root.key("global options");
    if global.exists() {
        section("global", &global);
    }
    let mut named = BTreeSet::new();
    for job in root.key("jobs").items() {
        let name = job.key("jobname").text().unwrap_or_default();
        let options = job.key("job options");
        if named.insert(name) && options.exists() {
            section(if name.is_empty() { "job" } else { name }, &options);
        }
    }
    text
}

/// Returns the value of a job's option. If the job does not set the option, returns its value in
/// the global section. Returns `None` if the result contains neither.
fn option(root: &Value, job: &Value, name: &str) -> Option<String> {
    let own = options(job, "job options").and_then(|options| options.get(name));
    let global = || options(root, "global options").and_then(|options| options.get(name));
    own.or_else(global).map(|value| value.as_str().unwrap_or_default().to_owned())
}

/// Returns the state of an option that is a switch. It is true if the option has no value, or a
/// value other than 0. Returns `None` if the result does not contain the option.
fn switch(root: &Value, job: &Value, name: &str) -> Option<bool> {
    option(root, job, name).map(|value| value != "0")
}

fn engine_of(root: &Value, job: &Value) -> String {
    option(root, job, "ioengine").unwrap_or_else(|| DEFAULT_ENGINE.to_owned())
}

/// Returns true if an engine accesses this host's files and block devices.
fn is_local(engine: &str) -> bool {
    SYNCHRONOUS.contains(&engine) || ASYNCHRONOUS.contains(&engine) || engine == "null"
}

/// Sets the values that follow from the job's options.
fn take_options(bundle: &mut Bundle, root: &Value, jobs: &[Value]) {
    let engine = &mut bundle.run.engine;
    engine.kind = engine_of(root, &jobs[0]);
    engine.closed_loop = !jobs.iter().any(|job| option(root, job, "rate_iops").is_some());
    engine.sessions = jobs.len() as u32;
    let clones =
        |job: &Value| option(root, job, "numjobs").and_then(|n| n.parse().ok()).unwrap_or(1u32);
    let mut named = BTreeSet::new();
    let of_jobs = jobs.iter().filter(|job| named.insert(text_at(job, "jobname")));
    engine.threads = of_jobs.map(clones).sum();
    for job in jobs {
        let path = option(root, job, "filename").or_else(|| option(root, job, "directory"));
        let path = path.unwrap_or_else(|| text_at(job, "jobname").to_owned());
        let buffered = switch(root, job, "buffered");
        let direct = switch(root, job, "direct").or(buffered.map(|buffered| !buffered));
        let why = match direct {
            Some(true) => "",
            Some(false) => "the job requests buffered I/O",
            None => "the result does not state that I/O was direct",
        };
        if !engine.paths.iter().any(|known| known.path == path) {
            let direct = direct == Some(true);
            engine.paths.push(PathEngine { path, direct, why: why.into(), direct_refused: None });
        }
    }
    let zeros = |job: &Value| switch(root, job, "zero_buffers") == Some(true);
    if jobs.iter().any(zeros) {
        bundle.run.counters.insert(ZERO_BUFFERS.into(), 1);
    }
    take_cpu(bundle, jobs);
}

fn take_cpu(bundle: &mut Bundle, jobs: &[Value]) {
    let (mut user, mut system, mut most) = (0.0, 0.0, 0.0f64);
    for job in jobs {
        let time_ns = jobs::runtime_ms(job).saturating_mul(NS_PER_MS) as f64;
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
    fn a_job_that_became_steady_needs_no_intervals() {
        let steady = r#""runtime": "60", "steadystate": "iops:30%", "steadystate_duration": "3""#;
        let text = RESULT.replace(r#""runtime": "60""#, steady);
        assert!(!read(&text, "result.json").unwrap().plan.phases.until_steady);
    }

    #[test]
    fn an_engine_without_data_is_not_judged_as_a_run() {
        let error = read(&RESULT.replace("libaio", "falloc"), "x").unwrap_err().to_string();
        assert!(error.contains("its engine falloc does not read or write data"), "{error}");
    }

    #[test]
    fn kb_base_does_not_apply_to_sizes_before_it() {
        let sizes = |options: &str| {
            let text = RESULT.replace(r#""bs": "4k""#, options);
            let bundle = read(&text, "x").unwrap();
            bundle.plan.workload.matrix().unwrap().streams[0].sizes[0].size_bytes
        };
        assert_eq!(sizes(r#""bs": "4k", "kb_base": "1000""#), 4096);
        assert_eq!(sizes(r#""kb_base": "1000", "bs": "64k""#), 64_000);
    }

    #[test]
    fn converts_a_result_without_inventing_values() {
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
    fn a_job_that_cannot_be_converted_has_its_figures_and_files() {
        let text = RESULT.replace("\"bs\"", "\"latency_target\": \"5ms\", \"bs\"");
        let error = read(&text, "result.json").unwrap_err().to_string();
        assert!(error.contains("latency_target"), "{error}");
        let bundle = read_figures(&text, "result.json").unwrap();
        let class = &bundle.run.classes[0];
        assert_eq!((class.count, class.is_read), (600_000, true));
        assert_eq!(bundle.run.engine.paths[0].path, "/x/f");
        assert!(bundle.run.engine.paths[0].direct);
    }

    #[test]
    fn the_last_option_of_a_pair_counts() {
        for (options, reads) in [
            (r#""rwmixread": "70", "rwmixwrite": "40""#, 60.0),
            (r#""rwmixwrite": "40", "rwmixread": "70""#, 70.0),
        ] {
            let text =
                RESULT.replace("\"rw\": \"randread\"", &format!("\"rw\": \"randrw\", {options}"));
            let plan = read(&text, "result.json").unwrap().plan;
            assert_eq!(plan.workload.matrix().unwrap().streams[0].read_percent, reads);
        }
    }

    #[test]
    fn reads_that_verify_are_not_part_of_the_workload() {
        let text = RESULT
            .replace("\"rw\": \"randread\"", "\"rw\": \"randrw\", \"verify\": \"crc32c\"")
            .replace(
                "\"write\": {\"total_ios\": 0}",
                "\"write\": {\"io_bytes\": 819200000, \"runtime\": 60000, \"total_ios\": 200000, \
                 \"lat_ns\": {\"mean\": 5.0}}",
            );
        let bundle = read(&text, "result.json").unwrap();
        let of = |group: &str| {
            let classes = bundle.run.classes.iter().filter(|c| c.group == group);
            classes.map(|c| (c.is_read, c.count)).collect::<Vec<_>>()
        };
        assert_eq!(of("transactional"), [(true, 400_000), (false, 200_000)]);
        assert_eq!(of("verify"), [(true, 200_000)]);
    }

    #[test]
    fn a_mixed_job_that_verified_nothing_has_its_own_reads() {
        // For a mix with 50 % reads: the numbers of reads and writes in the result, and the
        // expected numbers of reads of the workload and of the verification.
        for (counted, reads) in [
            ((18_521, 18_892), vec![18_521]),
            ((4_510, 2_542), vec![2_542, 1_968]),
            ((600_000, 200_000), vec![400_000, 200_000]),
        ] {
            let text = RESULT
                .replace("\"rw\": \"randread\"", "\"rw\": \"randrw\", \"verify\": \"crc32c\"")
                .replace("\"total_ios\": 600000", &format!("\"total_ios\": {}", counted.0))
                .replace(
                    "\"write\": {\"total_ios\": 0}",
                    &format!("\"write\": {{\"runtime\": 60000, \"total_ios\": {}}}", counted.1),
                );
            let bundle = read(&text, "result.json").unwrap();
            let classes = bundle.run.classes.iter().filter(|class| class.is_read);
            assert_eq!(classes.map(|class| class.count).collect::<Vec<_>>(), reads);
        }
    }

    #[test]
    fn counters_may_miss_a_short_verification() {
        let devices = |runtime_ms: u32| {
            let text = RESULT.replace(
                "\"write\": {\"total_ios\": 0}",
                "\"write\": {\"runtime\": 60000, \"total_ios\": 3, \"io_bytes\": 12288}",
            );
            let text =
                text.replacen("\"runtime\": 60000", &format!("\"runtime\": {runtime_ms}"), 1);
            read(&text, "result.json").unwrap().observed.devices.len()
        };
        assert_eq!((devices(60_000), devices(57)), (1, 0));
    }

    #[test]
    fn a_result_without_separate_reads_is_judged_by_its_figures() {
        let text = RESULT.replace("\"read\":", "\"mixed\":");
        assert!(read(&text, "x").unwrap_err().to_string().contains("unified_rw_reporting"));
    }

    #[test]
    fn jobs_that_ran_one_after_another_are_not_one_run() {
        let job = |group: u32| {
            format!(
                r#"{{"jobname": "j", "groupid": {group}, "job options": {{"rw": "read", "bs": "1m",
                    "size": "64m", "filename": "/x/f"}}, "read": {{"io_bytes": 1048576000,
                    "total_ios": 1000, "runtime": 1000}}}}"#
            )
        };
        let text = |second: u32| {
            format!(r#"{{"fio version": "fio-3.33", "jobs": [{}, {}]}}"#, job(0), job(second))
        };
        assert!(read(&text(0), "r.json").is_ok());
        assert_eq!(read(&text(1), "r.json").unwrap_err().0, SEVERAL_GROUPS);
    }

    #[test]
    fn rejects_text_without_a_result() {
        for (text, says) in [
            ("", "empty"),
            ("{", "not valid JSON: line 1: it ends in the middle of a value: the file is cut off"),
            ("{\"a\": 1}", "not a fio result"),
            ("x", "not valid JSON"),
        ] {
            let error = read(text, "x").unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
