//! Tests of `plimsoll compare`: a plan runs alternately on two file systems, and finished
//! experiments are compared.

use crate::support::{self, LoopFs, Sandbox, SmallPlan, json};
use serde_json::Value;

#[test]
fn ext4_against_btrfs_runs_in_turns_with_fresh_data_and_one_report() {
    let sandbox = Sandbox::new();
    let mounted = |kind: &str, options: &str| {
        let root = sandbox.path(kind);
        std::fs::create_dir(&root).unwrap();
        LoopFs::new(&root, kind, 192, options)
    };
    let (ext4, btrfs) = (mounted("ext4", "noatime"), mounted("btrfs", "noatime"));
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.more = "[repeat]\nruns = 2".into();
    let target = |name: &str, fs: &LoopFs| {
        format!("[[target]]\nname = \"{name}\"\npath = {:?}\n", fs.mount.display().to_string())
    };
    let both = format!("{}{}", target("ext4", &ext4), target("btrfs", &btrfs));
    let text = plan.text().replace(&format!("[target]\n{}\n", plan.target), &both);
    let path = sandbox.path("two.toml");
    std::fs::write(&path, text).unwrap();

    // Two runs of each target cannot show a difference: the command reports this before it
    // measures.
    for command in ["compare", "run"] {
        let refused = sandbox.run(&[command, path.to_str().unwrap()]).expect(2);
        refused.says("fewer than 4 runs per target");
        refused.says("[repeat] runs = 4");
    }
    assert!(sandbox.bundles().is_empty());
    let ran = sandbox.run(&["compare", path.to_str().unwrap(), "--few", "--json"]);
    let compared = ran.json();
    assert!(compared["why"]["causes"].is_array(), "{compared}");
    assert_eq!(compared["names"], serde_json::json!(["ext4", "btrfs"]));
    // The two file systems are comparable. The only exception is a host that disturbs a run: the
    // run is then INVALID, and the comparison reports this.
    let unlike = compared["unlike"].as_array().unwrap();
    assert!(unlike.iter().all(|one| one["name"] == "invalid-runs"), "{unlike:?}");
    let rate = &compared["metrics"][0];
    assert_eq!(rate["key"], "achieved_iops_per_s");
    for side in 0..2 {
        assert_eq!(rate["sides"][side]["values"].as_array().unwrap().len(), 2);
    }
    let keys = compared["metrics"].to_string();
    assert!(keys.contains("cpu_ns_per_op") && keys.contains("db_read_latency_ns_avg"), "{keys}");

    let experiment = sandbox.bundle();
    let record = json(&experiment.join("experiment.json"));
    assert_eq!((&record["kind"], &record["result"]), (&Value::from("compare"), &compared));
    let mut file_systems = Vec::new();
    for run in record["runs"].as_array().unwrap() {
        let bundle = experiment.join(run["run_id"].as_str().unwrap());
        let evidence = json(&bundle.join("run.json"));
        assert_eq!(evidence["experiment"]["data_of_run"], Value::Null);
        assert!(evidence["phases"].to_string().contains("\"create\""), "fresh data each time");
        let mount = &json(&bundle.join("environment.json"))["mounts"][0];
        assert_eq!(mount["file_system"], run["arm"], "each arm is on its own file system");
        file_systems.push(run["arm"].as_str().unwrap().to_owned());
    }
    // Each round measures both file systems.
    for round in file_systems.chunks(2) {
        assert!(round.contains(&"ext4".to_owned()) && round.contains(&"btrfs".to_owned()));
    }
    let page = std::fs::read_to_string(experiment.join("report.html")).unwrap();
    assert!(page.contains("Side by side") && page.contains("<svg"));
    for fs in [&ext4, &btrfs] {
        let left = support::names(&fs.mount);
        assert!(!left.iter().any(|name| name.starts_with("plimsoll")), "{left:?}");
    }
    // `compare` and `runs show` compute the same result from the bundles alone.
    let id = experiment.file_name().unwrap().to_str().unwrap();
    assert_eq!(sandbox.run(&["compare", id, "--json"]).json(), compared);
    assert_eq!(sandbox.run(&["runs", "show", id, "--json"]).expect(0).json(), compared);
}

#[test]
fn unlike_plans_have_no_winner_until_their_difference_is_accepted() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let once = |plan: &SmallPlan, out: &str| {
        let out = sandbox.path(out).display().to_string();
        sandbox.run(&["run", &sandbox.plan(plan), "-q", "--out", &out]);
        out
    };
    let a = once(&plan, "a");
    // The requirement is above the rates of both sides; this is the first reason in the report.
    plan.mailbox = "think_time = \"1ms\"".into();
    let b = once(&plan, "b");
    let page = sandbox.path("compared.html").display().to_string();
    let ran = sandbox.run(&["compare", &a, &b, "--json"]);
    let compared = ran.json();
    let unlike = compared["unlike"].to_string();
    assert!(unlike.contains("plan.workload.mailbox.think_time_ns"), "{unlike}");
    // If the rates of both sides are far above the requirement, the report states this instead. In
    // neither case is a side better.
    assert_eq!(compared["winner"], Value::Null);
    assert!([0, 3].contains(&ran.code), "{}", ran.stdout);
    let accepted =
        sandbox.run(&["compare", &a, &b, "--accept", "plan", "--html", &page, "--json"]).json();
    assert!(accepted["unlike"].to_string().contains("\"accepted\":true"), "{accepted}");
    assert!(std::fs::read_to_string(page).unwrap().contains("accepted"));
    // The condition given with `--factor` is not reported as a difference, but all other conditions
    // are.
    let requested = ["--factor", "plan.workload.mailbox.think_time_ns", "--json"];
    let (old, new) = (format!("old={a}"), format!("new={b}"));
    let requested = sandbox.run(&[&["compare", &old, &new], &requested[..]].concat()).json();
    assert_eq!(requested["names"], serde_json::json!(["old", "new"]));
    for one in requested["unlike"].as_array().unwrap() {
        let is_factor = one["name"] == "plan.workload.mailbox.think_time_ns";
        assert_eq!(one["factor"], is_factor, "{one}");
        assert!(is_factor || one["accepted"] == false || one["name"] == "invalid-runs", "{one}");
    }
    let first = &requested["why"]["parts_at"][0];
    assert_eq!(first["kind"], "condition", "{requested}");
    // If one directory contains both sides, the two sides are compared with each other.
    let both = sandbox.path("both");
    std::fs::create_dir(&both).unwrap();
    for (from, to) in [(&a, "before"), (&b, "after")] {
        support::tool("cp", &["-r", from, both.join(to).to_str().unwrap()]);
    }
    let within = sandbox.run(&["compare", both.to_str().unwrap(), "--json"]).json();
    assert_eq!(within["names"], serde_json::json!(["after", "before"]), "{within}");
    sandbox.run(&["compare", &a]).expect(2).says("a comparison needs two");
    sandbox.run(&["compare", &a, "/nowhere"]).expect(2).says("no bundle");
}

#[test]
fn a_comparison_says_first_what_it_will_take_and_can_be_tried_dry() {
    let sandbox = Sandbox::new();
    let (a, b) = (sandbox.path("a"), sandbox.path("b"));
    for directory in [&a, &b] {
        std::fs::create_dir(directory).unwrap();
    }
    let (ext4, btrfs) = (format!("ext4={}", a.display()), format!("btrfs={}", b.display()));
    let named = ["compare", "oltp", "--target", &ext4, "--target", &btrfs];
    let small = ["--set", "workload.matrix.file_size=1MiB"];
    let with = |more: &[&str]| sandbox.run(&[&named[..], &small[..], more].concat());
    // The built-in plan is compared on two paths of this machine.
    let ran = with(&["--set", "repeat.runs=4", "--dry-run"]).expect(0);
    for says in [
        "takes 4 h 8 min (8 runs of 31 min)",
        "at the earliest",
        "17 MiB needed",
        "writes 136 MiB to create the data",
        "run 1 of 8: ",
        "run 8 of 8: ",
        "exists and is writable",
    ] {
        ran.says(says);
    }
    assert!(sandbox.bundles().is_empty() && support::names(&a).is_empty());
    // Too few runs, too little space, and plans that measure for weeks are rejected before any
    // work.
    with(&["--dry-run"]).expect(2).says("--runs 4");
    let vast = ["--set", "workload.matrix.file_size=100TiB", "--set", "repeat.runs=4"];
    sandbox
        .run(&[&named[..], &vast[..]].concat())
        .expect(2)
        .says("free, but the plan's data needs");
    let long = ["--set", "repeat.runs=4", "--set", "phases.measure=1000000h"];
    with(&long).expect(2).says("--yes");
    with(&[&long[..], &["--yes", "--dry-run"]].concat()).expect(0).says("run 8 of 8: ");
    let nowhere = ["--target", "c=/no/such", "--set", "repeat.runs=4"];
    with(&nowhere).expect(2).says("/no/such is not an existing directory");
    // A single path is not a comparison, and plan flags are only valid with a plan.
    sandbox.run(&["compare", "oltp"]).expect(2).says("--target ext4=/mnt/a");
    sandbox
        .run(&["compare", "oltp", "--target", "/mnt/a"])
        .expect(2)
        .says("a name and a path are required");
    sandbox
        .run(&["compare", "here", "there", "--dry-run"])
        .expect(2)
        .says("--dry-run can be used only with a plan");
}

#[test]
fn a_plan_names_the_difference_that_is_the_question() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.more = "[compare]\nfactor = \"plan.workload.mailbox.think_time_ns\"".into();
    let once = |plan: &SmallPlan, out: &str| {
        let out = sandbox.path(out).display().to_string();
        sandbox.run(&["run", &sandbox.plan(plan), "-q", "--out", &out]);
        out
    };
    let a = once(&plan, "a");
    plan.mailbox = "think_time = \"1ms\"".into();
    let b = once(&plan, "b");
    let compared = sandbox.run(&["compare", &a, &b, "--json"]).json();
    for one in compared["unlike"].as_array().unwrap() {
        assert_eq!(one["factor"], one["name"] == "plan.workload.mailbox.think_time_ns", "{one}");
    }
    assert!(compared["unlike"].to_string().contains("think_time_ns"), "{compared}");
    // Only targets that occur in the plans of both sides are compared.
    plan.more = String::new();
    let c = once(&plan, "c");
    let compared = sandbox.run(&["compare", &a, &c, "--json"]).json();
    let unlike = compared["unlike"].as_array().unwrap();
    assert!(unlike.iter().all(|one| one["factor"] == false), "{unlike:?}");
}

/// Writes a plan with a fast and a slow modelled target, or with two targets that use the fast
/// model.
fn modelled_sides(sandbox: &Sandbox, name: &str, new: &str, runs: u32) -> String {
    let text = format!(
        "version = 1\nname = \"gated\"\n[[target]]\nname = \"base\"\nmodel = \
         \"laptop-nvme\"\n[[target]]\nname = \"new\"\nmodel = \"{new}\"\n[workload.matrix]\nsizes = \
         \"4KiB\"\nreads = 70\nfile_size = \"64MiB\"\nqueue_depth = 1\n[phases]\nwarm_up = \
         \"1s\"\nmeasure = \"30s\"\n[evidence]\nmin_measure = \"30s\"\n[repeat]\nruns = {runs}\n"
    );
    let path = sandbox.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_comparison_goes_on_where_an_earlier_one_stopped() {
    let sandbox = Sandbox::new();
    let plan = modelled_sides(&sandbox, "sides.toml", "single-hdd", 4);
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"30s\"", "\"2s\"")).unwrap();
    let out = sandbox.path("out");
    let compare = |more: &[&str]| {
        let with = ["compare", plan.as_str(), "--out", out.to_str().unwrap()];
        sandbox.run(&[&with[..], more].concat())
    };
    let page = sandbox.path("page.html");
    let first = compare(&["--html", page.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&page).unwrap().contains("</html>"), "--html is honoured");
    assert!(!first.stderr.contains("resumes"), "{}", first.stderr);
    let [experiment] = &support::names(&out)[..] else { panic!("one experiment") };
    let experiment = out.join(experiment);
    let runs = || {
        let mut runs = support::names(&experiment);
        runs.retain(|name| experiment.join(name).join("run.json").is_file());
        runs.sort();
        runs
    };
    let all = runs();
    assert_eq!(all.len(), 8);
    // Three runs are missing, as if a failure had occurred.
    all[5..].iter().for_each(|run| std::fs::remove_dir_all(experiment.join(run)).unwrap());
    let resumed = compare(&["--json"]);
    assert!(
        resumed.stderr.contains("5 of 8 runs are done (pass --restart to start again)"),
        "{}",
        resumed.stderr
    );
    let compared = resumed.json();
    for side in 0..2 {
        let values = compared["metrics"][0]["sides"][side]["values"].as_array().unwrap();
        assert_eq!(values.len(), 4, "{compared}");
    }
    let resumed = runs();
    assert!(resumed.len() == 8 && all[..5].iter().all(|run| resumed.contains(run)), "{resumed:?}");
    // A finished comparison is not resumed. With `--restart`, an unfinished comparison is not
    // resumed either.
    compare(&["-q"]);
    let both = support::names(&out);
    assert_eq!(both.len(), 2);
    let latest = both.iter().map(|name| out.join(name)).find(|path| *path != experiment).unwrap();
    let mut runs = support::names(&latest);
    runs.retain(|name| latest.join(name).join("run.json").is_file());
    std::fs::remove_dir_all(latest.join(&runs[0])).unwrap();
    compare(&["-q", "--restart"]);
    assert_eq!(support::names(&out).len(), 3);
}

#[test]
fn a_gate_fails_a_shown_regression_passes_its_absence_and_leaves_the_rest_open() {
    let sandbox = Sandbox::new();
    let slow = modelled_sides(&sandbox, "slow.toml", "single-hdd", 4);
    let out = sandbox.path("out").display().to_string();
    let [junit, page] = ["gate.xml", "gate.md"].map(|name| sandbox.path(name));
    let files = ["--junit", junit.to_str().unwrap(), "--markdown", page.to_str().unwrap()];
    let gate = ["--fail-if-worse", "10%", "--json"];
    // The device and the model's own conditions differ on purpose. The gate decides nothing until
    // this difference is accepted; then it reports a regression.
    let ran = sandbox.run(&[&["compare", &slow, "--out", &out, "-q"], &gate[..]].concat());
    let compared = ran.json();
    let experiment = support::names(std::path::Path::new(&out)).remove(0);
    let experiment = format!("{out}/{experiment}");
    let accept: Vec<String> = compared["unlike"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| ["--accept".to_owned(), one["name"].as_str().unwrap().to_owned()])
        .collect();
    let accept: Vec<&str> = accept.iter().map(String::as_str).collect();
    let first = ["compare", experiment.as_str()];
    let again = sandbox.run(&[&first[..], &accept, &gate, &files].concat()).expect(1).json();
    assert_eq!(again["gate"]["outcome"], "worse", "{again}");
    let figure = &again["gate"]["figures"][0];
    assert_eq!((&figure["figure"], &figure["outcome"]), (&"rate".into(), &"worse".into()));
    assert!(figure["change_interval_share"][1].as_f64().unwrap() < -0.1, "{figure}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<testcase classname=\"figure\" name=\"rate\"><failure"), "{xml}");
    let markdown = std::fs::read_to_string(&page).unwrap();
    assert!(markdown.starts_with("# WORSE: base and new"), "{markdown}");
    assert!(markdown.contains("| figure | base"), "{markdown}");
    // The report prints the table of the gate first.
    let text = sandbox.run(&[&first[..], &accept, &gate[..2]].concat()).expect(1).stdout;
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in:\n{text}"));
    assert!(at("Figures with their allowances") < at("Side by side"), "{text}");

    let same = modelled_sides(&sandbox, "same.toml", "laptop-nvme", 4);
    let ran = sandbox.run(&[&["compare", &same, "-q"], &gate[..]].concat()).expect(0);
    assert_eq!(ran.json()["gate"]["outcome"], "not-worse");
    let few = modelled_sides(&sandbox, "few.toml", "laptop-nvme", 2);
    let ran = sandbox.run(&[&["compare", &few, "--few", "-q"], &gate[..]].concat()).expect(3);
    let gate = &ran.json()["gate"];
    assert_eq!((&gate["outcome"], &gate["runs_more_per_side"]), (&"undecided".into(), &2.into()));
}

#[test]
fn wrong_allowances_are_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let plan = modelled_sides(&sandbox, "plan.toml", "laptop-nvme", 4);
    let with = |allowance: &str| sandbox.run(&["compare", &plan, "--fail-if-worse", allowance]);
    with("p42=5%").expect(2).says("figures: rate, bandwidth, latency, p99, read, read_p99");
    with("10").expect(2).says("examples: 10%");
    assert!(sandbox.bundles().is_empty());
    sandbox.run(&["compare", &plan, "--junit", "gate.xml"]).expect(2).says("--fail-if-worse");
}

#[test]
fn an_interrupted_and_resumed_comparison_can_be_read_again() {
    let sandbox = Sandbox::new();
    let target = |name: &str| {
        std::fs::create_dir(sandbox.data().join(name)).unwrap();
        format!("[[target]]\nname = \"{name}\"\npath = {:?}\n", sandbox.data().join(name))
    };
    let text = format!(
        "version = 1\nname = \"halted\"\n{}{}[workload.matrix]\nsizes = \"4KiB\"\nfile_size = \
         \"4MiB\"\n[phases]\nwarm_up = \"0s\"\nmeasure = \"2s\"\n[evidence]\nmin_measure = \"1s\"\n",
        target("a"),
        target("b")
    );
    let (plan, out) = (sandbox.path("halted.toml"), sandbox.path("out"));
    std::fs::write(&plan, text).unwrap();
    let (plan, out_text) = (plan.display().to_string(), out.display().to_string());
    let arguments = ["compare", &plan, "--few", "--out", &out_text, "--json"];
    let runs = || {
        let entries = std::fs::read_dir(&out).into_iter().flatten().flatten();
        let experiment = entries.map(|entry| entry.path()).next().unwrap_or_default();
        let entries = std::fs::read_dir(experiment).into_iter().flatten().flatten();
        let bundles = entries.map(|entry| entry.path().join("run.json"));
        bundles.filter(|run| run.is_file()).map(|run| support::json(&run)).collect::<Vec<_>>()
    };
    let child = sandbox.start(&arguments);
    support::wait_until("the first run", || runs().len() == 1);
    std::thread::sleep(std::time::Duration::from_millis(700));
    support::signal(&child, "-INT");
    let first = support::CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    assert_ne!(first.json()["doubt"], serde_json::Value::Null, "{}", first.stdout);
    let resumed = sandbox.run(&arguments);
    resumed.says("1 of 2 runs are done");
    let mut numbers: Vec<u64> =
        runs().iter().map(|run| run["experiment"]["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    let experiment = out.join(&support::names(&out)[0]).display().to_string();
    let compared = sandbox.run(&["compare", &experiment, "--json"]);
    assert_eq!(compared.code, resumed.code, "{}", compared.stderr);
    let (read, resumed) = (compared.json(), resumed.json());
    assert_eq!(read["reason"], resumed["reason"], "{read:#}");
    assert_eq!(read["remarks"], resumed["remarks"], "{read:#}");
    compared.says("was repeated");
    for command in ["report", "verify"] {
        let ran = sandbox.run(&[command, &experiment]);
        assert!(!ran.stderr.contains("error:"), "{}", ran.stderr);
    }
}
