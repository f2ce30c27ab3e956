//! Cases that an earlier version passed by mistake, each in the form in which the mistake was
//! discovered.

use std::time::Duration;

use crate::dictionary;
use crate::disturbance;
use crate::program::Going;
use crate::s3::{KEY, SECRET};
use crate::stack::{Kind, Stack};
use crate::support::{CommandOutput, Sandbox, found, json};

/// Runs a plan that reads and writes on this target, with a requirement that any storage meets.
fn ran(sandbox: &Sandbox, target: &str, workload: &str, more: &str) -> CommandOutput {
    let text = format!(
        "version = 1\nname = \"adversary\"\n[requirement]\niops = 1\nclaims = [\"media-read\", \
         \"sustained-write\", \
         \"durable-write\"]\n[target]\n{target}\n[workload.matrix]\n{workload}\n[phases]\nwarm_up = \
         \"200ms\"\nmeasure = \"1500ms\"\n[evidence]\nmin_measure = \"500ms\"\ninterval = \
         \"20ms\"\n{more}"
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    let mut command = sandbox.command(&["run", "plan.toml", "--json", "-q"]);
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    CommandOutput::from(command.output().unwrap())
}

/// A server on this host keeps its data in memory: the disks moved no data, and the verdict states
/// this. If other processes (such as other tests) use the disks, the finding is unknown, but never
/// a pass.
#[track_caller]
fn is_said_to_be_in_memory(ran: &CommandOutput) {
    let verdict = ran.json();
    let expected = match found(&verdict, "bytes-balance").as_str().unwrap_or("not there") {
        "fail" => "INVALID",
        "unknown" => "INCONCLUSIVE",
        other => panic!("bytes-balance is {other}: {verdict:#}"),
    };
    assert_eq!(verdict["verdict"], expected, "{verdict:#}");
    for claim in ["requirement", "media-read", "sustained-write", "durable-write"] {
        let standing = verdict["claims"][claim].as_str().unwrap();
        assert!(!standing.starts_with("believable"), "{claim} is {standing}: {verdict:#}");
    }
}

#[test]
fn nfs_that_a_model_serves_is_memory() {
    let sandbox = Sandbox::new();
    let stack = Stack::new(Kind::NfsModel, &sandbox).unwrap();
    let workload = "sizes = \"64KiB\"\nreads = 70\nfile_size = \"8MiB\"";
    is_said_to_be_in_memory(&ran(&sandbox, &stack.target, workload, ""));
}

#[test]
fn objects_in_a_dictionary_are_memory() {
    let sandbox = Sandbox::new();
    let target = format!("s3 = \"s3://load/unit\"\nendpoint = {:?}", dictionary::start());
    let workload = "sizes = \"64KiB\"\nreads = 70\nfiles = 2\nfile_size = \"4MiB\"";
    is_said_to_be_in_memory(&ran(&sandbox, &target, workload, ""));
}

/// A declared compression of 40:1 is unrealistic: the report says so, and nothing passes.
#[test]
fn forty_to_one_is_said_to_be_nobodys_data() {
    let sandbox = Sandbox::new();
    let stack = Stack::new(Kind::Compressed, &sandbox).unwrap();
    let workload = "reads = 50\nfile_size = \"24MiB\"\ncompressibility = 40.0";
    let ran = ran(&sandbox, &stack.target, workload, "[observe]\ndata_reduction = 40.0\n");
    let verdict = ran.json();
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    assert_eq!(found(&verdict, "data-reduced"), "fail", "{verdict:#}");
    let report = std::fs::read_to_string(sandbox.bundle().join("report.html")).unwrap();
    assert!(report.contains("data-reduced"), "the report does not name it");
}

/// Writes that still hang when the measurement ends are awaited, and their latency counts for the
/// maximum.
#[test]
fn a_hang_at_the_end_is_in_the_maximum() {
    let sandbox = Sandbox::new();
    let stack = Stack::new(Kind::Loop("ext4", "defaults"), &sandbox).unwrap();
    let text = format!(
        "version = 1\nname = \"adversary\"\n[requirement]\niops = 1\nwrite_latency_p50 = \
         \"1s\"\n[target]\n{}\n[workload.matrix]\nreads = 0\nqueue_depth = 8\nfile_size = \
         \"24MiB\"\ndirect = \"required\"\n[phases]\nwarm_up = \"200ms\"\nmeasure = \
         \"2500ms\"\n[evidence]\nmin_measure = \"500ms\"\ninterval = \"20ms\"\n",
        stack.target
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    let mut command = sandbox.command(&["run", "plan.toml", "--json", "-q"]);
    let (hang, mut done) =
        (disturbance::Kind::HangAtTheEnd, disturbance::DisturbanceEffect::default());
    let mut going = Going::start(&sandbox, &mut command);
    disturbance::during(hang, &mut going, &stack, Duration::from_millis(2500), &mut done);
    let verdict = going.end().expect("it ends").json();
    assert!(done.frozen_at_unix_ns.is_some(), "the file system was not frozen in time");
    let run = json(&sandbox.bundle().join("run.json"));
    let classes = run["classes"].as_array().unwrap();
    let write = classes.iter().find(|class| class["is_read"] == false).unwrap();
    let largest_ns = write["latency_ns_max"].as_u64().unwrap();
    assert!(largest_ns > disturbance::FROZEN.as_nanos() as u64 / 2, "{write}");
    assert!(write["drained"].as_u64().unwrap() > 0, "{write}");
    assert_ne!(verdict["verdict"], "PASS", "{verdict:#}");
}

/// Each row of the tables in this directory's README contains the name of its test, and the test
/// exists.
#[test]
fn every_row_is_held_by_a_test_that_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let text =
        std::fs::read_to_string(root.join("crates/run/cli/tests/adversary/README.md")).unwrap();
    let (_, tables) = text.split_once("## Tests of each trick and defect").expect("the section");
    let tables = tables.split("\n## ").next().unwrap();
    let mut held = 0;
    for row in tables.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what")) {
        let tests: Vec<&str> =
            row.split('`').skip(1).step_by(2).filter(|t| t.contains("::")).collect();
        assert!(!tests.is_empty(), "no test is named: {row}");
        for test in tests {
            let (file, name) = test.split_once("::").unwrap();
            let path = match file.strip_prefix("rules/") {
                Some(rule) => root.join("crates/judge/judge/src/rules").join(rule),
                None => root.join("crates").join(file),
            };
            let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(source.contains(&format!("fn {name}(")), "{file} has no test {name}");
        }
        held += 1;
    }
    // The tables have 31 and 11 rows of detected cases, and 36 rows of tricks.
    assert!(held >= 78, "{held} rows");
}
