//! `plimsoll runs`: the list, the names of runs as arguments of every command, notes and tags, and
//! archives for other machines.

use std::path::Path;

use crate::support::{self, Sandbox, SmallPlan};
use serde_json::{Value, json};

/// Creates a small run in the catalogue, and another run in a separate directory (`--out`).
fn two(sandbox: &Sandbox) -> (String, String) {
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let path = sandbox.plan(&plan);
    let out = sandbox.path("elsewhere").display().to_string();
    sandbox.run(&["run", &path, "-q"]);
    sandbox.run(&["run", &path, "-q", "--out", &out]);
    let listed = sandbox.run(&["runs", "--json"]).expect(0).json();
    let id = |at: usize| listed[at]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    let bundle = listed[1]["bundle"].as_str().unwrap();
    assert!(bundle.contains("/elsewhere/") && Path::new(bundle).is_dir(), "{bundle}");
    assert!(listed[0]["achieved_iops_per_s"].as_f64().unwrap() > 0.0, "{listed}");
    (id(0), id(1))
}

#[test]
fn a_run_answers_to_its_number_its_name_the_beginning_of_it_and_last() {
    let sandbox = Sandbox::new();
    let (first, second) = two(&sandbox);
    let numbers = sandbox.run(&["runs", "--json"]).json();
    let number = |at: usize| numbers[at]["position"].to_string();
    let of = |called: &str| {
        let ran = sandbox.run(&["report", called, "--json"]);
        ran.json()["run_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(of(&number(0)), first);
    assert_eq!(of(&number(1)), second);
    assert_eq!(of("last"), second);
    assert_eq!(of(&first[..first.len() - 1]), first);
    assert_eq!(of("small"), second, "the latest of the plan");
    for command in [&["judge"][..], &["report"], &["runs", "show"], &["verify"]] {
        let ran = sandbox.run(&[command, &["last"]].concat());
        assert_ne!(ran.code, 2, "{command:?}: {}", ran.stderr);
    }
    sandbox.run(&["report", "99"]).expect(2).says("no bundle 99");
    // The names of both runs start with the date, so this prefix is ambiguous.
    sandbox.run(&["report", &first[..4]]).expect(2).says("but several names begin with it");
    sandbox.run(&["compare", &format!("old={}", number(0)), "new=last", "--json"]).json();
}

#[test]
fn runs_are_filtered_tagged_noted_and_removed() {
    let sandbox = Sandbox::new();
    let (first, second) = two(&sandbox);
    sandbox.run(&["runs", "tag", &first, "before", "slow"]).expect(0).says("before, slow");
    sandbox.run(&["runs", "tag", &first, "slow", "--remove"]).expect(0);
    sandbox.run(&["runs", "note", "last", "new firmware"]).expect(0);
    let list = |options: &[&str]| {
        let listed = sandbox.run(&[&["runs", "--json"], options].concat()).expect(0).json();
        let ids = listed.as_array().unwrap().iter().map(|run| run["run_id"].clone());
        ids.collect::<Vec<Value>>()
    };
    assert_eq!(list(&["--tag", "before"]), [json!(first)]);
    assert_eq!(list(&["--limit", "1"]), [json!(second)]);
    assert_eq!(list(&["--plan", "sma"]).len(), 2);
    assert!(
        list(&["--plan", "exchange"]).is_empty() && list(&["--until", "2026-01-01"]).is_empty()
    );
    assert_eq!(list(&["--since", "2026-01-01"]).len(), 2);
    let data = sandbox.data().display().to_string();
    assert_eq!(list(&["--target", &data]).len(), 2);
    assert!(list(&["--target", "/mnt/elsewhere"]).is_empty());
    let shown = sandbox.run(&["runs", "--json"]).json();
    let figure = |at: usize, name: &str| shown[at][name].as_f64().unwrap();
    let rates = [figure(0, "achieved_iops_per_s"), figure(1, "achieved_iops_per_s")];
    let faster = usize::from(rates[1] > rates[0]);
    let least = format!("{}/s", rates[faster]);
    assert_eq!(list(&["--rate-min", &least])[0], shown[faster]["run_id"]);
    assert!(list(&["--rate-min", &format!("{}/s", rates[faster] + 1.0)]).is_empty());
    assert_eq!(list(&["--read-latency-max", "1h"]).len(), 2);
    assert!(list(&["--read-latency-max", "1ns"]).is_empty());
    sandbox.run(&["runs", "--rate-min", "5000"]).expect(2).says("500/s");
    sandbox.run(&["runs", "--since", "yesterday"]).expect(2).says("2026-11-23");
    let shown = sandbox.run(&["runs"]).expect(0);
    shown.says("before");
    shown.says("new firmware");
    // The seal does not include notes.
    sandbox.run(&["verify", &first]).says("INTACT");
    // Without its index, the catalogue shows the same runs.
    let before = sandbox.run(&["runs", "--json"]).stdout;
    std::fs::remove_file(sandbox.path("cache/plimsoll/catalogue.sqlite3")).unwrap();
    assert_eq!(sandbox.run(&["runs", "--json"]).stdout, before);
    sandbox.run(&["runs", "rm", &second]).expect(0);
    sandbox.run(&["report", &second]).expect(2).says("was removed");
    assert_eq!(list(&[]).len(), 2, "the ledger remembers it");
    assert_eq!(support::names(&sandbox.path("elsewhere")), Vec::<String>::new());
}

#[test]
fn a_run_goes_to_another_machine_with_what_was_noted_of_it() {
    let sandbox = Sandbox::new();
    let (first, _) = two(&sandbox);
    sandbox.run(&["runs", "note", &first, "the odd one"]).expect(0);
    let archive = sandbox.path("run.tar.gz").display().to_string();
    sandbox.run(&["runs", "export", &first, &archive]).expect(0);
    sandbox.run(&["runs", "export", &first, &archive]).expect(2).says("run.tar.gz");
    let there = Sandbox::new();
    there.run(&["runs", "import", &archive]).expect(0).says(&first);
    let listed = there.run(&["runs", "--json"]).expect(0).json();
    assert_eq!((&listed[0]["run_id"], &listed[0]["note"]), (&json!(first), &json!("the odd one")));
    assert_eq!(listed[0]["position"], Value::Null, "no ledger there holds it");
    there.run(&["report", "last"]).says("no ledger on this host contains this run");
    there.run(&["runs", "import", &archive]).expect(2).says("already exists");
    let nothing = there.path("nothing.tar.gz");
    std::fs::write(&nothing, "no archive").unwrap();
    there
        .run(&["runs", "import", nothing.to_str().unwrap()])
        .expect(2)
        .says("plimsoll runs export");
}

#[test]
fn report_works_on_experiments_too() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.more = "[repeat]\nruns = 2".into();
    sandbox.run(&["run", &sandbox.plan(&plan), "-q"]);
    let experiment = sandbox.bundle().file_name().unwrap().to_str().unwrap().to_owned();
    sandbox.run(&["report", &experiment]).says("2 runs");
    let page = sandbox.run(&["report", &experiment, "--format", "html"]).stdout;
    assert!(page.starts_with("<!doctype html>"), "{page:.100}");
    sandbox.run(&["report", &experiment, "--format", "markdown"]).says("Figures of all runs");
    sandbox.run(&["report", &experiment, "--format", "fio-json"]).expect(2).says("one of its runs");
    // The prefix selects the experiment, although the names of its runs have the same prefix.
    sandbox.run(&["report", &experiment[..experiment.len() - 1]]).says("2 runs");
}
