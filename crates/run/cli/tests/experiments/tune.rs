//! Tests of `plimsoll tune`: a search on a small real store leaves only a curve and the bundles.

use crate::support::{CommandOutput, Sandbox, SmallPlan, json, names, signal, wait_until};
use serde_json::Value;

fn small(sandbox: &Sandbox) -> SmallPlan {
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailboxes = 8;
    plan.measure = "2s".into();
    plan
}

/// Returns the only experiment in the catalogue.
fn experiment(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.bundle()
}

#[test]
fn each_step_is_a_judged_run_on_the_data_of_the_one_before() {
    let sandbox = Sandbox::new();
    let plan = sandbox.plan(&small(&sandbox));
    let ran = sandbox.run(&["tune", &plan, "--max", "4", "--steps", "3", "--json"]);
    let tuning = ran.json();
    let steps = tuning["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3, "{}", ran.stdout);
    assert_eq!(tuning["knob"], "threads");
    assert!([0, 1, 3].contains(&ran.code), "{}", ran.stderr);
    let directory = experiment(&sandbox);
    let record = json(&directory.join("experiment.json"));
    assert_eq!((&record["kind"], &record["result"]), (&Value::from("tune"), &tuning));
    let mut before = Value::Null;
    for (number, step) in (1..).zip(steps) {
        assert!(step["rate_per_s"].as_f64().unwrap() > 0.0);
        let bundle = directory.join(step["run_id"].as_str().unwrap());
        let run = json(&bundle.join("run.json"));
        let place = &run["experiment"];
        assert_eq!((&place["number"], &place["kind"]), (&Value::from(number), &"tune".into()));
        assert_eq!(place["data_of_run"], before, "the data is that of the step before");
        let made = run["phases"].as_array().unwrap().iter().any(|p| p["kind"] == "create");
        assert_eq!(made, before.is_null(), "data is made once");
        assert!(run["checks"]["pages_checked"].as_u64().unwrap() > 0);
        assert_eq!(run["checks"]["errors"], 0);
        before = step["run_id"].clone();
    }
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("Throughput and latency") && page.contains("<svg"));
    assert!(page.contains("<dt>host</dt>") && page.contains("<dt>plan</dt><dd>small</dd>"));
    // `runs show` computes the same result from the bundles alone.
    let id = directory.file_name().unwrap().to_str().unwrap();
    assert_eq!(sandbox.run(&["runs", "show", id, "--json"]).expect(0).json(), tuning);
    let csv = sandbox.run(&["report", id, "--format", "csv"]).expect(0).stdout;
    assert!(csv.starts_with("load,rate_per_s,"), "{csv}");
    assert_eq!(csv.lines().count(), 4, "a heading and three steps: {csv}");
    assert!(page.contains("I/Os per second over threads"), "the rate over the load");
    let listed = sandbox.run(&["runs", "--json"]).json();
    assert!(listed.as_array().unwrap().iter().all(|run| run["experiment"] == id), "{listed}");
    assert!(listed.as_array().unwrap().iter().all(|run| run["bundle"].is_string()), "{listed}");
}

#[test]
fn an_interrupted_search_keeps_what_it_found() {
    let sandbox = Sandbox::new();
    let plan = sandbox.plan(&small(&sandbox));
    let child = sandbox.start(&["tune", &plan, "-q", "--json"]);
    let record = || {
        let bundles = sandbox.bundles();
        let path = bundles.first().map(|directory| directory.join("experiment.json"));
        path.filter(|path| path.is_file())
    };
    wait_until("the first step", || record().is_some());
    signal(&child, "-INT");
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    let tuning = ran.json();
    assert_eq!(tuning["complete"], false);
    assert!(!tuning["steps"].as_array().unwrap().is_empty());
    assert_eq!(json(&record().unwrap())["result"], tuning);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    assert!(names(&experiment(&sandbox)).contains(&"report.html".to_owned()));
}

#[test]
fn steps_too_short_to_judge_are_refused() {
    let sandbox = Sandbox::new();
    let mut plan = small(&sandbox);
    plan.measure = "1s".into();
    let plan = sandbox.plan(&plan);
    let ran = sandbox.run(&["tune", &plan]).expect(2);
    ran.says("at least 20");
    assert!(sandbox.bundles().is_empty() && sandbox.left_in_data().is_empty());
}

#[test]
fn the_known_limit_of_a_modelled_volume_is_found() {
    let sandbox = Sandbox::new();
    // While the volume has burst credit, it sustains at most 3,000 I/Os per second.
    let text = "version = 1\nname = \"limited\"\n[requirement]\niops = 1000\nread_latency_avg = \
                \"20ms\"\n[target]\nmodel = \"cloud-volume\"\n[workload.matrix]\nsizes = \
                \"4KiB\"\nfile_size = \"64MiB\"\nclients = 1\n[phases]\nwarm_up = \"1s\"\nmeasure = \
                \"30s\"\n[evidence]\nmin_measure = \"30s\"\ninterval = \"1s\"\n";
    let path = sandbox.path("limited.toml");
    std::fs::write(&path, text).unwrap();
    let tuning = sandbox.run(&["tune", path.to_str().unwrap(), "-q", "--json"]).expect(0).json();
    let line = tuning["load_line"]["rate_per_s"].as_f64().unwrap();
    assert!((line / 3000.0 - 1.0).abs() < 0.05, "{line}");
    assert!(tuning["steps"].as_array().unwrap().len() <= 16);
    assert_eq!((&tuning["confirmed"], &tuning["fewest_checked"]), (&true.into(), &true.into()));
    // One operation in flight achieves 2,000/s, and 1,000/s are required.
    assert_eq!(tuning["fewest"]["load"], 1);
}

/// Tunes a plan on a model, in virtual time.
fn tuned(text: &str) -> Value {
    let sandbox = Sandbox::new();
    let path = sandbox.path("model.toml");
    std::fs::write(&path, text).unwrap();
    sandbox.run(&["tune", path.to_str().unwrap(), "-q", "--json"]).expect(0).json()
}

#[test]
fn the_load_line_of_a_curve_that_falls_beyond_it_is_found() {
    // Sequential writes go to the log on flash, which sustains 400 MB/s. This is 6,056 records per
    // second, each of them with 64 KiB and a header. If more than 768 KiB (12 writes) are in
    // flight, they bypass the log and go to a disk with less than half of that rate.
    let tuning = tuned(
        "version = 1\nname = \"falls\"\n[requirement]\niops = 1000\nwrite_latency_avg = \
         \"100ms\"\n[target]\nmodel = \"adsf-hybrid\"\n[target.set]\n\"oplog.bypass_bytes\" = \
         786432\n\"oplog.file_bytes\" = \"40 GB\"\n\"oplog.drain_share\" = 1.0\n\"oplog.copies\" = \
         1\n\"replicate.copies\" = 1\n\"controller.write_wait_us\" = 0\n\"ssd.transfers\" = \
         \"lanes\"\n\"model.nodes\" = 1\n\"extents.writes\" = \
         \"in-place\"\n\"extents.capacity_bytes\" = \"1 GB\"\n[workload.matrix]\nsizes = \
         \"64KiB\"\nfile_size = \"60GiB\"\nclients = 1\nreads = 0\npatterns = \
         \"sequential\"\n[phases]\nwarm_up = \"1s\"\nmeasure = \"30s\"\n[evidence]\nmin_measure = \
         \"30s\"\ninterval = \"1s\"\n",
    );
    let line = &tuning["load_line"];
    let rate = line["rate_per_s"].as_f64().unwrap();
    assert!((rate / 6056.0 - 1.0).abs() < 0.05, "{rate}");
    let depth = line["load"].as_u64().unwrap();
    assert!((10..=12).contains(&depth), "{depth}");
    let steps = tuning["steps"].as_array().unwrap();
    assert!(steps.len() <= 16, "{}", steps.len());
    // The search measured loads above the drop in rate. Since no latency limit was exceeded there,
    // only the rate shows the drop.
    let beyond = steps.iter().find(|step| step["load"].as_u64() > Some(12)).unwrap();
    assert_eq!(beyond["within"], true);
    assert!(beyond["rate_per_s"].as_f64().unwrap() < rate / 2.0, "{beyond}");
    assert_eq!((&tuning["confirmed"], &tuning["fewest_checked"]), (&true.into(), &true.into()));
    assert!(tuning["remarks"][0].as_str().unwrap().starts_with("The curve falls"), "{tuning}");
}

#[test]
fn an_open_loop_is_tuned_by_its_rate() {
    let tuning = tuned(
        "version = 1\nname = \"open\"\n[requirement]\niops = 1000\nread_latency_avg = \
         \"20ms\"\n[target]\nmodel = \"cloud-volume\"\n[workload.matrix]\nsizes = \
         \"4KiB\"\nfile_size = \"64MiB\"\nclients = 4\nqueue_depth = 64\narrival = \
         \"constant\"\nrate = 2000\n[phases]\nwarm_up = \"1s\"\nmeasure = \
         \"30s\"\n[evidence]\nmin_measure = \"30s\"\ninterval = \"1s\"\n",
    );
    assert_eq!(tuning["knob"], "rate");
    let rate = tuning["load_line"]["rate_per_s"].as_f64().unwrap();
    assert!((rate / 3000.0 - 1.0).abs() < 0.05, "the volume takes 3,000/s: {rate}");
    let steps = tuning["steps"].as_array().unwrap();
    assert!(steps.len() <= 16 && tuning["confirmed"] == true, "{tuning}");
    // Above the measured limit, the volume cannot sustain the offered load, and the queue grows
    // without limit.
    let beyond = steps.iter().find(|step| step["load"].as_u64() > Some(3600)).unwrap();
    assert_eq!(beyond["within"], false, "{beyond}");
}

#[test]
fn a_load_that_never_settled_leaves_the_answer_open() {
    // Each step is too short to fill a cold cache. Loads that reach the required rate are unsteady,
    // and steady loads do not reach it.
    let sandbox = Sandbox::new();
    let text = "version = 1\nname = \"cold\"\n[requirement]\niops = 15000\nread_latency_avg = \
                \"1s\"\n[target]\nmodel = \"zfs-flash\"\n[workload.matrix]\nsizes = \
                \"8KiB\"\nfile_size = \"64GiB\"\nreads = 50\nclients = 1\n[phases]\nwarm_up = \
                \"2s\"\nmeasure = \"10s\"\n[evidence]\nmin_measure = \"5s\"\ninterval = \"500ms\"\n";
    let path = sandbox.path("cold.toml");
    std::fs::write(&path, text).unwrap();
    let ran =
        sandbox.run(&["tune", path.to_str().unwrap(), "-q", "--json", "--max", "4"]).expect(3);
    let tuning = ran.json();
    assert_eq!(tuning["confirmed"], false);
    let remarks = tuning["remarks"].to_string();
    assert!(remarks.contains("never became steady"), "{remarks}");
}

/// A database reads at random from a modelled array, while a backup reads sequentially for a
/// minute.
const NEIGHBOUR: &str = "version = 1\nname = \"neighbour\"\nseed = \
                         5\n[requirement.during]\nlatency_avg = \"210us\"\n[target]\nmodel = \
                         \"zfs-flash\"\n[[event]]\nname = \"backup\"\nat = \"20s\"\nundo_at = \
                         \"80s\"\n[[workload.matrix]]\nname = \"database\"\nsizes = \"8KiB\"\nreads \
                         = 100\nclients = 8\nfiles = 8\nfile_size = \"16GiB\"\narrival = \
                         \"poisson\"\nrate = 300\nrequirement = { read_latency_p99 = \"10ms\", iops \
                         = 280 }\n[[workload.matrix]]\nname = \"backup\"\nstart = \
                         \"event:backup\"\nsizes = \"512KiB\"\nreads = 100\npatterns = \
                         \"sequential\"\nclients = 2\nfiles = 2\nfile_size = \"16GiB\"\narrival = \
                         \"constant\"\nrate = 400\n[phases]\nwarm_up = \"5s\"\nmeasure = \
                         \"90s\"\n[evidence]\nmin_measure = \"30s\"\n";

#[test]
fn the_load_of_a_neighbour_is_found_beside_which_the_requirement_holds() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("neighbour.toml");
    std::fs::write(&path, NEIGHBOUR).unwrap();
    let tune = ["tune", path.to_str().unwrap(), "-q", "--vary", "backup", "--min", "200"];
    let tune = [&tune[..], &["--max", "1600", "--steps", "4"]].concat();
    let tuning = sandbox.run(&[&tune[..], &["--json"]].concat()).expect(0).json();
    let line = tuning["load_line"]["load"].as_u64().unwrap();
    let achieved = tuning["load_line"]["rate_per_s"].as_f64().unwrap();
    assert!((achieved / line as f64 - 1.0).abs() < 0.03, "{tuning:#}");
    let steps = tuning["steps"].as_array().unwrap();
    let above = steps.iter().filter(|step| step["load"].as_u64() > Some(line));
    let above = above.min_by_key(|step| step["load"].as_u64()).unwrap();
    assert_eq!(above["verdict"], "FAIL", "{tuning:#}");
    // Only the neighbour's load differs between the steps.
    let directory = experiment(&sandbox);
    for step in steps {
        let bundle = directory.join(step["run_id"].as_str().unwrap());
        let resolved = std::fs::read_to_string(bundle.join("resolved.toml")).unwrap();
        let rates: Vec<f64> = resolved
            .lines()
            .filter_map(|line| line.strip_prefix("rate_per_s = ")?.parse().ok())
            .collect();
        assert_eq!(rates, [300.0, step["load"].as_f64().unwrap()], "{resolved}");
    }
    // The report contains this sentence, and `runs show` computes the same result from the bundles.
    let id = directory.file_name().unwrap().to_str().unwrap();
    assert_eq!(sandbox.run(&["runs", "show", id, "--json"]).expect(0).json(), tuning);
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    let says = format!(
        "database meets its requirement if the additional load is at most {line} reads/s of backup."
    );
    assert!(page.contains(&says), "{says}");
    assert!(page.contains(&format!("At {} reads/s of backup: FAIL, during ", above["load"])));
    // A plain run with this load of the neighbour passes, and a run with the next higher load
    // fails.
    for (load, code) in [(line, 0), (above["load"].as_u64().unwrap(), 1)] {
        let own = Sandbox::new();
        let path = own.path("plan.toml");
        let text = NEIGHBOUR.replace("rate = 400", &format!("rate = {load}"));
        std::fs::write(&path, text).unwrap();
        let ran = own.run(&["run", path.to_str().unwrap(), "-q"]);
        assert_eq!(ran.code, code, "{load}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_limits_of_a_single_stream_end_a_search_too_and_a_closed_neighbour_has_a_depth() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("neighbour.toml");
    // In this plan, no limit of a window ends the search.
    let text = NEIGHBOUR
        .replace("latency_avg = \"210us\"", "latency_avg = \"1s\"")
        .replace("read_latency_p99 = \"10ms\"", "read_latency_p99 = \"550us\"")
        .replace("arrival = \"constant\"\nrate = 400\n", "think_time = \"20ms\"\n");
    std::fs::write(&path, text).unwrap();
    let tune = ["tune", path.to_str().unwrap(), "-q", "--vary", "backup", "--max", "16"];
    let ran = sandbox.run(&[&tune[..], &["--steps", "4"]].concat()).expect(0);
    ran.says("outstanding reads of backup (2 clients × depth ");
    ran.says("database: read latency p99");
}

#[test]
fn a_neighbour_that_the_plan_does_not_have_or_no_requirement_is_refused() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("neighbour.toml");
    std::fs::write(&path, NEIGHBOUR).unwrap();
    let tune =
        |more: &[&str]| sandbox.run(&[&["tune", path.to_str().unwrap(), "-q"], more].concat());
    tune(&["--vary", "backups"]).expect(2).says("its streams are database, backup");
    tune(&["--vary", "backup", "--fleet", "local:2"]).expect(2).says("cannot be used with");
    let limits = [
        "[requirement.during]\nlatency_avg = \"210us\"\n",
        "requirement = { read_latency_p99 = \"10ms\", iops = 280 }\n",
    ];
    let text = limits.iter().fold(NEIGHBOUR.to_owned(), |text, limits| text.replace(limits, ""));
    std::fs::write(&path, text).unwrap();
    tune(&["--vary", "backup"]).expect(2).says("the plan has no requirement");
    assert!(sandbox.bundles().is_empty());
}
