//! `plimsoll compare`: targets of one plan in turns on two file systems, and experiments side by side.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use support::{LoopFs, Sandbox, SmallPlan, json};

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

    // Two runs of each can't tell a difference: that is said before an hour is spent on them.
    let refused = sandbox.run(&["compare", path.to_str().unwrap()]).expect(2);
    refused.says("fewer than 4 runs of each");
    refused.says("[repeat] runs = 4");
    assert!(sandbox.bundles().is_empty());
    let ran = sandbox.run(&["compare", path.to_str().unwrap(), "--few", "--json"]);
    let compared = ran.json();
    assert!(compared["why"]["causes"].is_array(), "{compared}");
    assert_eq!(compared["names"], serde_json::json!(["ext4", "btrfs"]));
    // The file systems are what is compared. A run that the host disturbed is INVALID, and is said.
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
    // Each round takes both.
    for round in file_systems.chunks(2) {
        assert!(round.contains(&"ext4".to_owned()) && round.contains(&"btrfs".to_owned()));
    }
    let page = std::fs::read_to_string(experiment.join("report.html")).unwrap();
    assert!(page.contains("Side by side") && page.contains("<svg"));
    for fs in [&ext4, &btrfs] {
        let left = support::names(&fs.mount);
        assert!(!left.iter().any(|name| name.starts_with("plimsoll")), "{left:?}");
    }
    // The same again from the bundles alone.
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
    // Required so much that no side meets it, and nothing else is said first.
    plan.mailbox = "think_time = \"1ms\"".into();
    let b = once(&plan, "b");
    let page = sandbox.path("compared.html").display().to_string();
    let ran = sandbox.run(&["compare", &a, &b, "--json"]);
    let compared = ran.json();
    let unlike = compared["unlike"].to_string();
    assert!(unlike.contains("plan.workload.mailbox.think_time_ns"), "{unlike}");
    // With headroom on both sides that is said instead; either way nobody is called the winner.
    assert_eq!(compared["winner"], Value::Null);
    assert!([0, 3].contains(&ran.code), "{}", ran.stdout);
    let accepted =
        sandbox.run(&["compare", &a, &b, "--accept", "plan", "--html", &page, "--json"]).json();
    assert!(accepted["unlike"].to_string().contains("\"accepted\":true"), "{accepted}");
    assert!(std::fs::read_to_string(page).unwrap().contains("accepted"));
    // What is asked about is no unlike condition, and every other difference still is.
    let asked = ["--factor", "plan.workload.mailbox.think_time_ns", "--json"];
    let (old, new) = (format!("old={a}"), format!("new={b}"));
    let asked = sandbox.run(&[&["compare", &old, &new], &asked[..]].concat()).json();
    assert_eq!(asked["names"], serde_json::json!(["old", "new"]));
    for one in asked["unlike"].as_array().unwrap() {
        let is_factor = one["name"] == "plan.workload.mailbox.think_time_ns";
        assert_eq!(one["factor"], is_factor, "{one}");
        assert!(is_factor || one["accepted"] == false || one["name"] == "invalid-runs", "{one}");
    }
    let first = &asked["why"]["parts_at"][0];
    assert_eq!(first["kind"], "condition", "{asked}");
    // A directory that holds both is compared within itself.
    let both = sandbox.path("both");
    std::fs::create_dir(&both).unwrap();
    for (from, to) in [(&a, "before"), (&b, "after")] {
        support::tool("cp", &["-r", from, both.join(to).to_str().unwrap()]);
    }
    let within = sandbox.run(&["compare", both.to_str().unwrap(), "--json"]).json();
    assert_eq!(within["names"], serde_json::json!(["after", "before"]), "{within}");
    sandbox.run(&["compare", &a]).expect(2).says("name another");
    sandbox.run(&["compare", &a, "/nowhere"]).expect(2).says("there is no bundle");
}
