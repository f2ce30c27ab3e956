//! `plimsoll run`: a mailbox run on real files writes evidence that can be judged again.

use crate::support::{self, Sandbox, SmallPlan, json};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn a_run_leaves_a_sealed_bundle_that_judges_the_same_again() {
    let sandbox = Sandbox::new();
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let ran = sandbox.run(&["run", &plan, "--json"]);
    let verdict = ran.json();
    // On a busy machine, samples may be unsteady, or the rate may be too low. Each verdict has its
    // own exit code.
    let code = match verdict["verdict"].as_str().unwrap() {
        "PASS" => 0,
        "FAIL" => 1,
        "INCONCLUSIVE" => 3,
        other => panic!("{other}: {}", ran.stdout),
    };
    ran.expect(code);
    let bundle = sandbox.bundle();
    let files = [
        "SHA256SUMS",
        "environment.json",
        "latency.hlog",
        "observed.json",
        "plan.toml",
        "report.html",
        "resolved.toml",
        "run.json",
        "series.csv",
        "verdict.json",
    ];
    assert_eq!(support::names(&bundle), files);
    assert_eq!(json(&bundle.join("verdict.json")), verdict);
    let sums = std::process::Command::new("sha256sum")
        .args(["-c", "--quiet", "SHA256SUMS"])
        .current_dir(&bundle)
        .status()
        .unwrap();
    assert!(sums.success());
    let before = std::fs::read(bundle.join("verdict.json")).unwrap();
    let moved = sandbox.path("elsewhere");
    std::fs::rename(&bundle, &moved).unwrap();
    sandbox.run(&["judge", moved.to_str().unwrap(), "--json"]).expect(code);
    assert_eq!(std::fs::read(moved.join("verdict.json")).unwrap(), before);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    assert!(!sandbox.path("state/plimsoll/stores").read_dir().unwrap().any(|_| true));
}

#[test]
fn the_bundle_says_what_was_run_and_how() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox = "soft_recovery_log_files = 2\nstreaming_backup = true\ncopies = 2".into();
    let plan = sandbox.plan(&plan);
    sandbox.run(&["run", &plan, "--json"]);
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    let phases: Vec<&str> =
        run["phases"].as_array().unwrap().iter().map(|p| p["kind"].as_str().unwrap()).collect();
    let expected = [
        "create",
        "duplicate",
        "format-logs",
        "caches",
        "warm-up",
        "measure",
        "close",
        "soft-recovery",
        "backup",
        "verify",
    ];
    assert_eq!(phases, expected);
    assert_eq!(run["end"]["kind"], "completed", "{run}");
    let groups: std::collections::BTreeSet<&str> = run["classes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|class| class["count"].as_u64().unwrap() > 0)
        .map(|class| class["group"].as_str().unwrap())
        .collect();
    for group in ["transactional", "log", "maintenance", "replication"] {
        assert!(groups.contains(group), "{group} is not in {groups:?}");
    }
    assert!(["io_uring", "threads"].contains(&run["engine"]["kind"].as_str().unwrap()));
    assert_eq!(run["engine"]["closed_loop"], true);
    assert_eq!(run["ledger"]["position"], 1);
    // The run verifies two databases of 32 MiB each, page by page.
    assert!(run["checks"]["pages_checked"].as_u64().unwrap() >= 2048, "{}", run["checks"]);
    assert_eq!(run["checks"]["errors"], 0);
    schema_holds("run", &run);
    schema_holds("verdict", &json(&bundle.join("verdict.json")));
}

#[track_caller]
fn schema_holds(name: &str, value: &serde_json::Value) {
    let path = format!("{}/../../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let validator = jsonschema::validator_for(&json(path.as_ref())).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_thread_engine_leaves_the_same_kind_of_evidence() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.more = "[engine]\nio = \"threads\"".into();
    let plan = sandbox.plan(&plan);
    sandbox.run(&["run", &plan, "-q"]);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "threads");
    assert_eq!(run["end"]["kind"], "completed", "{run}");
    assert!(!run["engine"]["why"].as_str().unwrap().is_empty());
}

#[test]
fn an_open_loop_is_held_to_its_target_and_has_no_headroom() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox = "pace = \"target\"".into();
    plan.mailboxes = 100;
    plan.mailbox_size = "1MiB".into();
    plan.measure = "6s".into();
    let plan = sandbox.plan(&plan);
    let verdict = sandbox.run(&["run", &plan, "--json"]).json();
    assert_eq!(verdict["headroom"], serde_json::Value::Null);
    let achieved = verdict["achieved_iops_per_s"].as_f64().unwrap();
    // The Poisson arrivals have a rate of 20/s. Over 6 s, four standard deviations are 36 % of the
    // expected number.
    assert!((achieved - 20.0).abs() < 7.3, "{achieved}");
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["closed_loop"], false);
}

#[test]
fn repeats_make_an_experiment_and_hand_their_data_on_where_the_plan_says_so() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.more = "[repeat]\nruns = 2\nfresh = false".into();
    let plan = sandbox.plan(&plan);
    let together = sandbox.run(&["run", &plan, "--json"]).json();
    let runs: Vec<&str> = together["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["run_id"].as_str().unwrap())
        .collect();
    let experiment = sandbox.bundle();
    let of = |run: &str| json(&experiment.join(run).join("run.json"));
    assert_eq!(of(runs[0])["experiment"]["data_of_run"], serde_json::Value::Null);
    assert_eq!(of(runs[1])["experiment"]["data_of_run"], runs[0]);
    let made = |run: &str| of(run)["phases"].to_string().contains("\"create\"");
    assert!(made(runs[0]) && !made(runs[1]));
    schema_holds("run", &of(runs[1]));
    assert_eq!(json(&experiment.join("experiment.json"))["result"], together);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
}

/// Generates a small plan with streams, which may be invalid, on the null target or in a directory.
fn any_small_plan(data: &str) -> impl Strategy<Value = String> + use<> {
    let of = |words: &'static [&'static str]| proptest::sample::select(words);
    let target = of(&["null = true", "path = DATA"]);
    let sizes = of(&[
        "\"300B\"",
        "\"512B\"",
        "\"1000B\"",
        "\"2300B\"",
        "\"4KiB\"",
        "\"6KiB\"",
        "\"64KiB\"",
        "[\"4KiB\", \"8KiB\"]",
    ]);
    let files = of(&["\"1MiB\"", "\"100KiB\"", "\"23000B\"", "\"500000B\""]);
    let patterns = of(&["random", "sequential", "strided", "zipf", "permutation", "skipping"]);
    let fields = proptest::sample::subsequence(
        vec![
            "reads = 50",
            "direct = \"off\"",
            "sync = \"fdatasync\"",
            "clients = 3",
            "files = 2",
            "align = \"512B\"",
            "offset = \"300B\"",
            "working_set = \"40KiB\"",
            "arrival = \"poisson\"\nrate = 200",
            "metadata = 20",
            "duplicates = 0.5",
            "compressibility = 3",
            "stamps = false",
            "verify_reads = true",
            "layout = \"allocated\"",
        ],
        0..6,
    );
    let phases = proptest::sample::subsequence(vec!["verify = true", "until_steady = true"], 0..3);
    let data = format!("{data:?}");
    (target, sizes, files, patterns, fields, phases).prop_map(
        move |(target, sizes, files, pattern, fields, phases)| {
            format!(
                "version = 1\nname = \"small\"\n[target]\n{}\n[workload.matrix]\nsizes = \
                 {sizes}\nfile_size = {files}\npatterns = \"{pattern}\"\n{}\n[phases]\nwarm_up = \
                 \"0s\"\nmeasure = \"200ms\"\n{}\n[evidence]\nmin_measure = \"200ms\"\ninterval = \
                 \"50ms\"\n",
                target.replace("DATA", &data),
                fields.join("\n"),
                phases.join("\n"),
            )
        },
    )
}

#[test]
fn a_dry_run_refuses_exactly_what_the_run_refuses() {
    let sandbox = Sandbox::new();
    let plans = any_small_plan(&sandbox.data().display().to_string());
    let config =
        Config { cases: 40, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let path = sandbox.path("plan.toml").display().to_string();
    let refused_or_not = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let dry = sandbox.run(&["run", &path, "--dry-run"]);
        let run = sandbox.run(&["run", &path, "-q"]);
        assert!([0, 2].contains(&dry.code), "{text}\n{}\n{}", dry.stdout, dry.stderr);
        assert_eq!(dry.code == 2, run.code == 2, "{text}\n{}\n{}", dry.stderr, run.stderr);
        run.code
    };
    TestRunner::new(config)
        .run(&plans, |text| {
            refused_or_not(&text);
            Ok(())
        })
        .unwrap();
    // The plan uses records whose content cannot be checked. In an earlier version, the dry run
    // accepted such a plan.
    let records = "version = 1\n[target]\npath = \"data\"\n[workload.matrix]\nsizes = \
                   \"300B\"\ndirect = \"off\"\nfile_size = \"1MiB\"\n[phases]\nmeasure = \
                   \"1s\"\n[evidence]\nmin_measure = \"1s\"\n";
    assert_eq!(refused_or_not(records), 2);
}
