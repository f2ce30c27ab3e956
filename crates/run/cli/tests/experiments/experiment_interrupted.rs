//! `plimsoll experiment run` is interrupted on models and on real files, or its target lacks space.
//! Finished measurements are preserved, and `--resume` runs the remaining arms.

use std::path::{Path, PathBuf};

use crate::support::{self, CommandOutput, Sandbox, json};
use serde_json::Value;

/// An experiment with a short arm and a long arm. The long arm is still running when the experiment
/// is interrupted.
const EXPERIMENT: &str = r#"
version = 1
title = "Short and long"
about = "One arm ends soon, the other does not."
repeats = 1
[[arm]]
name = "short"
plan = "plan.toml"
[[arm]]
name = "long"
plan = "plan.toml"
change.phases.measure = "100h"
[[real]]
name = "long"
plan = "real.toml"
places = ["a"]
change.phases.measure = "10m"
"#;

const PLAN: &str = r#"
version = 1
name = "small"
[target]
model = "single-hdd"
[workload.matrix]
file_size = "16MiB"
[phases]
warm_up = "100ms"
measure = "1s"
[evidence]
min_measure = "1s"
"#;

fn written(sandbox: &Sandbox) -> String {
    let directory = sandbox.path("tiny");
    std::fs::create_dir(&directory).unwrap();
    let real = PLAN.replace("model = \"single-hdd\"", "path = \".\"");
    for (name, text) in [("experiment", EXPERIMENT), ("plan", PLAN), ("real", &real)] {
        std::fs::write(directory.join(format!("{name}.toml")), text).unwrap();
    }
    directory.display().to_string()
}

/// Returns the bundles of the finished runs of an experiment.
fn ended(experiment: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(experiment).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("verdict.json").exists()).collect()
}

fn arm<'a>(analysis: &'a Value, name: &str) -> &'a Value {
    analysis["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == name).unwrap()
}

#[test]
fn a_modelled_experiment_keeps_what_ended_and_goes_on_with_the_rest() {
    let sandbox = Sandbox::new();
    let tiny = written(&sandbox);
    let out = sandbox.path("out");
    let out_text = out.display().to_string();
    let arguments = ["experiment", "run", &tiny, "-q", "--json"];
    let child = sandbox.start(&[&arguments[..], &["--out", &out_text]].concat());
    let experiment =
        || std::fs::read_dir(&out).into_iter().flatten().flatten().map(|e| e.path()).next();
    support::wait_until("the short arm", || experiment().is_some_and(|e| !ended(&e).is_empty()));
    support::signal(&child, "-INT");
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    let experiment = experiment().unwrap();
    let analysis = ran.json();
    assert_eq!(
        (&analysis["ending"], &arm(&analysis, "long")["completed"]),
        (&"incomplete".into(), &0.into())
    );
    let kept = arm(&analysis, "short")["run_ids"].clone();
    assert_eq!(kept.as_array().unwrap().len(), 1, "{analysis}");
    assert_eq!(json(&experiment.join("experiment.json"))["result"], analysis);
    assert!(experiment.join("report.html").exists());

    // `--set` shortens the remaining runs; the finished arm does not run again.
    let id = experiment.display().to_string();
    let short = ["--resume", &id, "--set", "phases.measure=\"1s\""];
    let analysis = sandbox.run(&[&arguments[..], &short[..]].concat()).expect(0).json();
    assert_eq!(
        (&analysis["ending"], &arm(&analysis, "short")["run_ids"]),
        (&"reported".into(), &kept)
    );
    assert_eq!(arm(&analysis, "long")["completed"], 1);
}

#[test]
fn a_real_experiment_keeps_its_evidence_removes_its_data_and_goes_on() {
    let sandbox = Sandbox::new();
    let tiny = written(&sandbox);
    let place = format!("a={}", sandbox.data().display());
    let arguments = ["experiment", "run", &tiny, "-q", "--json", "--on", "real", "--path", &place];
    let child = sandbox.start(&arguments);
    support::wait_until("the data", || !sandbox.left_in_data().is_empty());
    support::signal(&child, "-TERM");
    let analysis = CommandOutput::from(child.wait_with_output().unwrap()).expect(130).json();
    assert_eq!((&analysis["ending"], &analysis["modelled"]), (&"incomplete".into(), &false.into()));
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    let experiment = sandbox.bundle();
    let [bundle] = &ended(&experiment)[..] else { panic!("{experiment:?}") };
    assert_eq!(json(&bundle.join("run.json"))["end"]["kind"], "interrupted");

    let id = experiment.display().to_string();
    let short = ["--resume", &id, "--set", "phases.measure=\"1s\""];
    let ran = sandbox.run(&[&arguments[..], &short[..]].concat());
    // Exit code 3 is allowed, because findings about this machine do not matter here.
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    let analysis = ran.json();
    assert_eq!(
        (&analysis["ending"], &arm(&analysis, "long")["completed"]),
        (&"reported".into(), &1.into())
    );
    assert!(sandbox.left_in_data().is_empty());
}

#[test]
fn a_place_without_room_is_named_and_gone_on_with() {
    let sandbox = Sandbox::new();
    let tiny = written(&sandbox);
    let place = format!("a={}", sandbox.data().display());
    let arguments = ["experiment", "run", &tiny, "-q", "--json", "--on", "real", "--path", &place];
    let vast = ["--set", "workload.matrix.file_size=\"900TiB\""];
    let ran = sandbox.run(&[&arguments[..], &vast[..]].concat());
    assert!([2, 5].contains(&ran.code), "{}\n{}", ran.code, ran.stderr);
    ran.says("free, but the plan's data needs");
    ran.says("--resume");
    assert!(sandbox.left_in_data().is_empty());
}
