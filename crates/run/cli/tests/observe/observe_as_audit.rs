//! The verdict on an observed result is at least as severe as the verdict on its file alone, and as
//! the verdict on the same load run by Plimsoll.
//!
//! Findings that are unknown from a file alone may pass under observation, because observation
//! shows more. Warnings and failures from the file alone also apply under observation. From mild to
//! severe, outcomes are: passed, unknown or not checked; warned; failed.

use std::path::Path;

use crate::support::{Sandbox, found, is_not_acquitted, tool};
use serde_json::Value;

/// Severity of an outcome.
fn weight(outcome: &str) -> u8 {
    match outcome {
        "fail" => 2,
        "warn" => 1,
        _ => 0,
    }
}

fn weight_of_verdict(word: &str) -> u8 {
    match word {
        "INVALID" => 2,
        "INCONCLUSIVE" => 1,
        _ => 0,
    }
}

/// Observes a fio job on `file` and audits the result file.
fn both(sandbox: &Sandbox, watched: &Path, file: &Path, job: &[&str]) -> (Value, Value) {
    let [watched, file] = [watched, file].map(|path| path.display().to_string());
    let named = format!("--filename={file}");
    let fio = [
        "fio",
        "--name=job",
        "--output=out.json",
        "--output-format=json+",
        "--time_based",
        "--runtime=2",
        &named,
    ];
    let observe = ["observe", "--path", &watched, "--result", "out.json", "--json", "--"];
    let observed = sandbox.run(&[&observe[..], &fio[..], job].concat()).json();
    let audited = sandbox.run(&["audit", "out.json", "--json"]).json();
    (observed, judged_as_a_run(&audited).expect("a verdict by the rules of a run").clone())
}

/// Returns the verdict of the rules for runs, from the output of `audit`.
fn judged_as_a_run(value: &Value) -> Option<&Value> {
    let is = value.get("findings").is_some() && value.get("tier").is_some();
    match value {
        _ if is => Some(value),
        Value::Object(fields) => fields.values().find_map(judged_as_a_run),
        Value::Array(items) => items.iter().find_map(judged_as_a_run),
        _ => None,
    }
}

/// Checks that no rule, claim or verdict is milder under observation than without it.
fn no_milder(name: &str, observed: &Value, audited: &Value) {
    for finding in audited["findings"].as_array().unwrap() {
        let rule = finding["rule"].as_str().unwrap();
        let (alone, watched) = (finding["outcome"].as_str().unwrap(), found(observed, rule));
        let watched = watched.as_str().unwrap_or("not asked");
        assert!(weight(watched) >= weight(alone), "{name}: {rule}: {watched}, alone {finding:#}");
    }
    for (claim, alone) in audited["claims"].as_object().unwrap() {
        let watched = &observed["claims"][claim];
        assert!(alone != "refuted" || watched == "refuted", "{name}: {claim}: {watched}");
    }
    let of = |verdict: &Value| weight_of_verdict(verdict["verdict"].as_str().unwrap());
    assert!(of(observed) >= of(audited) || of(audited) == 1, "{name}: {observed:#}");
}

const WRITES: [&str; 4] = ["--rw=randwrite", "--bs=4k", "--ioengine=psync", "--size=32m"];
const READS: [&str; 4] = ["--rw=randread", "--bs=4k", "--ioengine=psync", "--size=32m"];

/// Checks that a result that does not measure storage is INVALID under observation, and that the
/// rule `by` is one of the reasons.
fn caught(name: &str, by: &str, (observed, audited): &(Value, Value)) {
    no_milder(name, observed, audited);
    assert_eq!(observed["verdict"], "INVALID", "{name}: {observed:#}");
    assert_eq!(found(observed, by), "fail", "{name}: {observed:#}");
}

#[test]
fn memory_the_page_cache_holes_and_nothing_are_caught_under_observation() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for (name, job) in [("tmpfs, writes", WRITES), ("tmpfs, reads", READS)] {
        let ended = both(&sandbox, memory.path(), &memory.path().join("file"), &job);
        caught(name, "memory-target", &ended);
    }
    for (name, job) in [("page cache, writes", WRITES), ("page cache, reads", READS)] {
        let ended = both(&sandbox, &data, &data.join("file"), &job);
        caught(name, "working-set-small", &ended);
    }
    let sparse = data.join("sparse");
    std::fs::File::create(&sparse).unwrap().set_len(32 << 20).unwrap();
    let job = ["--rw=randread", "--bs=4k", "--ioengine=psync", "--size=32m", "--direct=1"];
    caught("sparse file", "holes-read", &both(&sandbox, &data, &sparse, &job));
    let null = Path::new("/dev/null");
    let ended = both(&sandbox, &data, null, &WRITES);
    caught("/dev/null", "observation-gaps", &ended);
    let engine = ["--rw=randread", "--bs=4k", "--ioengine=null", "--size=32m"];
    let ended = both(&sandbox, &data, &data.join("none"), &engine);
    caught("engine null", "memory-target", &ended);
    assert_eq!(ended.1["verdict"], "INVALID", "{:#}", ended.1);
}

#[test]
fn a_loop_device_through_the_page_cache_is_caught_under_observation() {
    let sandbox = Sandbox::new();
    let image = sandbox.data().join("image");
    let of = format!("of={}", image.display());
    tool("dd", &["if=/dev/urandom", &of, "bs=1M", "count=64", "conv=fsync"]);
    let device = tool("losetup", &["-f", "--show", image.to_str().unwrap()]);
    let device = Path::new(&device);
    let direct = ["--rw=randwrite", "--bs=4k", "--ioengine=psync", "--direct=1"];
    let above = ["--rw=randwrite", "--bs=4k", "--ioengine=psync"];
    let below = both(&sandbox, device, device, &direct);
    let above = both(&sandbox, device, device, &above);
    tool("losetup", &["-d", device.to_str().unwrap()]);
    no_milder("cache below", &below.0, &below.1);
    is_not_acquitted(&below.0);
    caught("cache above and below", "working-set-small", &above);
}

/// A claim that is refuted for Plimsoll's own run of the same load is also refuted for the observed
/// run.
#[test]
fn buffered_io_is_judged_as_a_run_of_ours_is() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    for (reads, job) in [(0, WRITES), (100, READS)] {
        let plan = sandbox.path("plan.toml");
        let text = format!(
            "version = 1\n[target]\npath = \"{}\"\n[workload.matrix]\nsizes = \"4KiB\"\nreads = \
             {reads}\nfile_size = \"32MiB\"\n[engine]\ndirect = \"off\"\n[phases]\nwarm_up = \
             \"1s\"\nmeasure = \"2s\"\n[evidence]\nmin_measure = \"1s\"\n",
            data.display()
        );
        std::fs::write(&plan, text).unwrap();
        let ours = sandbox.run(&["run", plan.to_str().unwrap(), "--json"]).json();
        let (observed, _) = both(&sandbox, &data, &data.join("file"), &job);
        assert_eq!(ours["verdict"], "INVALID", "{ours:#}");
        assert_eq!(found(&ours, "working-set-small"), "fail", "{ours:#}");
        for (claim, standing) in ours["claims"].as_object().unwrap() {
            // Byte counts show where reads came from: with a cold cache, the device reads all bytes
            // in both runs.
            let same = ["media-read", "sustained-write"].contains(&claim.as_str());
            let watched = &observed["claims"][claim];
            assert!(
                !same || standing != "refuted" || watched == "refuted",
                "{claim}: {observed:#}"
            );
        }
    }
}

/// An honest job gets no more negative findings than its file alone, whatever the name of its
/// engine is.
#[test]
fn an_engine_that_is_called_like_ours_contradicts_nothing() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    for engine in ["--ioengine=io_uring", "--ioengine=libaio", "--ioengine=psync"] {
        let job = ["--rw=randread", "--bs=4k", "--direct=1", "--iodepth=4", "--size=32m", engine];
        let (observed, audited) = both(&sandbox, &data, &data.join("file"), &job);
        no_milder(engine, &observed, &audited);
        assert_eq!(found(&observed, "evidence-consistent"), "pass", "{engine}: {observed:#}");
    }
}
