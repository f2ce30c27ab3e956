//! Tests of `plimsoll experiment`: reports of the published experiments, and runs of experiments on
//! models.

use std::path::PathBuf;

use crate::ganesha::Ganesha;
use crate::support::{self, Sandbox, json};
use serde_json::Value;

/// A small experiment with three arms on a model; its published figures are invented.
const EXPERIMENT: &str = r#"
version = 1
title = "Flash and disk"
about = "Which of two systems is faster."
repeats = 2
judged = ["achieved_iops_per_s"]
reference = "disk"
[[question]]
text = "Is flash faster?"
arm = "flash"
over = "disk"
figure = "read_latency_ns_avg"
[[question]]
text = "Why?"
arm = "disk"
[[panel]]
title = "Faster and faster"
figure = "achieved_iops_per_s"
arms = ["disk", "flash"]
along = "generation"
at = [1, 2]
[[arm]]
name = "disk"
plan = "plan.toml"
[[arm]]
name = "flash"
plan = "plan.toml"
change.target.model = "laptop-nvme"
[[arm]]
name = "sizes"
plan = "plan.toml"
[arm.change.workload.matrix]
sizes = ["4KiB", "8KiB"]
[[real]]
name = "here"
plan = "plan.toml"
places = ["a"]
"#;

const PLAN: &str = r#"
version = 1
name = "small"
[target]
model = "single-hdd"
[workload.matrix]
file_size = "64MiB"
queue_depth = 2
[phases]
warm_up = "1s"
measure = "2s"
[evidence]
min_measure = "1s"
"#;

fn written(sandbox: &Sandbox, name: &str, experiment: &str, published: &str) -> PathBuf {
    let directory = sandbox.path(name);
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("experiment.toml"), experiment).unwrap();
    std::fs::write(directory.join("plan.toml"), PLAN).unwrap();
    std::fs::write(directory.join("published.csv"), published).unwrap();
    directory
}

/// Returns the means of all figures in an analysis, without the names of runs.
fn means(analysis: &Value) -> Vec<(String, String, f64)> {
    let mut all = Vec::new();
    for arm in analysis["arms"].as_array().unwrap() {
        for figure in arm["figures"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            if let Some(mean) = figure["mean"].as_f64() {
                all.push((text(&arm["name"]), text(&figure["key"]), mean));
            }
        }
    }
    all
}

#[test]
fn shipped_experiments_are_listed_shown_and_exported_and_their_plans_are_in_order() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["experiment", "list", "--json"]).expect(0).json();
    let listed = listed.as_array().unwrap().clone();
    assert!(listed.iter().any(|one| one["name"] == "e1"));
    sandbox.run(&["experiment", "list"]).expect(0).says("e1");
    for one in &listed {
        let name = one["name"].as_str().unwrap();
        let shown = sandbox.run(&["experiment", "show", name, "--json"]).expect(0).json();
        assert!(!shown["arms"].as_array().unwrap().is_empty(), "{name}");
        sandbox.run(&["experiment", "show", name]).expect(0).says("Questions");
        // Each arm with published figures is an arm of the experiment.
        let arms: Vec<&str> = shown["arms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arm| arm["name"].as_str().unwrap())
            .collect();
        for given in shown["published"].as_array().unwrap() {
            assert!(arms.contains(&given["arm"].as_str().unwrap()), "{name}: {given}");
        }
    }
    let plan = sandbox.run(&["experiment", "show", "e1", "--plan", "4"]).expect(0).stdout;
    assert!(plan.contains("threads = 11") && plan.contains("in-place"), "{plan}");
    let path = sandbox.path("arm4.toml");
    std::fs::write(&path, plan).unwrap();
    sandbox.run(&["plan", "check", path.to_str().unwrap()]).expect(0);
    let exported = sandbox.path("mine").display().to_string();
    sandbox.run(&["experiment", "show", "e1", "--export", &exported]).expect(0);
    sandbox.run(&["experiment", "show", &exported]).expect(0).says("seven settings");
    sandbox
        .run(&["experiment", "show", "e1", "--export", &exported])
        .expect(2)
        .says("cannot write");
    sandbox
        .run(&["experiment", "show", "e9"])
        .expect(2)
        .says("specify one of the shipped experiments");
}

#[test]
fn arms_run_with_repeats_into_one_analysis_that_is_the_same_from_the_same_seed() {
    let sandbox = Sandbox::new();
    let directory = written(&sandbox, "tiny", EXPERIMENT, "");
    let tiny = directory.to_str().unwrap();
    let analysis = sandbox.run(&["experiment", "run", tiny, "-q", "--json"]).expect(0).json();
    assert_eq!(analysis["ending"], "reported");
    let arms = analysis["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["disk", "flash", "sizes random 4KiB r100 q2", "sizes random 8KiB r100 q2"]);
    for arm in arms {
        assert_eq!((&arm["completed"], &arm["planned"]), (&Value::from(2), &Value::from(2)));
        assert!(!arm["mechanism"].as_array().unwrap().is_empty(), "{arm}");
        let rate = &arm["figures"][0];
        assert_eq!(rate["key"], "achieved_iops_per_s");
        assert!(rate["interval"].is_array() && rate["values"].as_array().unwrap().len() == 2);
    }
    let answers = analysis["answers"].to_string();
    assert!(answers.contains("Shorter (") && answers.contains("disks were"), "{answers}");

    let experiment = sandbox.bundle();
    let record = json(&experiment.join("experiment.json"));
    assert_eq!((&record["kind"], &record["result"]), (&Value::from("published"), &analysis));
    assert_eq!(record["runs"].as_array().unwrap().len(), 8);
    let page = std::fs::read_to_string(experiment.join("report.html")).unwrap();
    for part in
        ["Questions and answers", "Arm disk", "<svg", "REPORTED", "Faster and faster", "generation"]
    {
        assert!(page.contains(part), "{part}");
    }
    // `runs show` computes the result again from the bundles, and the experiment is run again.
    let id = experiment.file_name().unwrap().to_str().unwrap();
    let again = sandbox.run(&["runs", "show", id, "--json"]).expect(0).json();
    assert_eq!(means(&again), means(&analysis));
    let second = sandbox.path("second").display().to_string();
    let rerun = sandbox.run(&["experiment", "run", tiny, "-q", "--json", "--out", &second]);
    assert_eq!(means(&rerun.expect(0).json()), means(&analysis));
}

#[test]
fn published_figures_judge_predictions_are_scored_and_what_is_missing_is_gone_on_with() {
    let sandbox = Sandbox::new();
    let rows = "arm,figure,value,role,source\ndisk,achieved_iops_per_s,1e9,input,nowhere\n";
    let directory = written(&sandbox, "tiny", EXPERIMENT, rows);
    let tiny = directory.to_str().unwrap();
    let part = sandbox.run(&["experiment", "run", tiny, "-q", "--json", "--arm", "disk"]);
    let analysis = part.expect(1).json();
    assert_eq!((&analysis["ending"], &analysis["score"]), (&"missed".into(), &Value::Null));
    let found = analysis["arms"][0]["figures"][0]["mean"].as_f64().unwrap();
    let kept = sandbox.path("kept.csv");
    let rows = format!(
        "arm,figure,value\ndisk,achieved_iops_per_s,{found}\nflash,achieved_iops_per_s,1\n"
    );
    std::fs::write(&kept, rows).unwrap();
    let id = sandbox.bundle().display().to_string();
    let more = ["--published", kept.to_str().unwrap(), "--resume", &id];
    let ran = sandbox.run(&[&["experiment", "run", tiny, "-q", "--json"][..], &more[..]].concat());
    let analysis = ran.expect(1).json();
    // The finished arm does not run again. Its published figure is its own result, so its error is
    // 0.
    assert_eq!(analysis["arms"][0]["figures"][0]["mean"].as_f64().unwrap(), found);
    assert_eq!(analysis["score"]["lines"].as_array().unwrap().len(), 2);
    assert_eq!(analysis["order"]["published"], serde_json::json!(["flash", "disk"]));
    assert_eq!(analysis["order"]["found"], serde_json::json!(["disk", "flash"]));
    assert_eq!(
        json(&sandbox.bundle().join("experiment.json"))["runs"].as_array().unwrap().len(),
        8
    );
}

#[test]
fn a_directory_that_is_wrong_says_where() {
    let sandbox = Sandbox::new();
    let mut number = 0;
    let mut wrong = |from: &str, to: &str, arguments: &[&str], says: &str| {
        number += 1;
        let text = EXPERIMENT.replacen(from, to, 1);
        let directory = written(&sandbox, &format!("wrong{number}"), &text, "");
        let directory = directory.to_str().unwrap();
        sandbox
            .run(&[&["experiment", "run", directory][..], arguments].concat())
            .expect(2)
            .says(says);
    };
    wrong("version = 1", "version = 7", &[], "version 7 is not supported");
    wrong("reference = \"disk\"", "reference = \"tape\"", &[], "the experiment has no arm tape");
    wrong(
        "name = \"flash\"",
        "name = \"disk\"",
        &[],
        "two arms of the experiment have the name disk",
    );
    wrong(
        "plan = \"plan.toml\"",
        "plan = \"other.toml\"",
        &[],
        "the plan file other.toml is not in",
    );
    wrong("model = \"laptop-nvme\"", "model = \"\"", &[], "arm flash");
    wrong("repeats = 2", "repeats = 2\nspeed = 3", &[], "speed");
    wrong("at = [1, 2]", "at = [1]", &[], "1 values for 2 arms");
    wrong(
        "arms = [\"disk\", \"flash\"]",
        "arms = [\"disk\", \"tape\"]",
        &[],
        "the experiment has no arm tape",
    );
    wrong("", "", &["--arm", "tape"], "the experiment has no arm tape");
    wrong("", "", &["--set", "phases.measure"], "does not have the form FIELD=VALUE");
    wrong("", "", &["--path", "a=/mnt"], "--on real");
    wrong("", "", &["--on", "real"], "no path was given for the place a");
    wrong("", "", &["--on", "real", "--path", "b=/mnt"], "there is no place b");
    let empty = sandbox.data().display().to_string();
    sandbox.run(&["experiment", "run", &empty]).expect(2).says("has no experiment.toml");
}

#[test]
fn real_arms_run_where_their_places_are() {
    let sandbox = Sandbox::new();
    let directory = written(&sandbox, "tiny", EXPERIMENT, "");
    let place = format!("a={}", sandbox.data().display());
    let arguments = ["--on", "real", "--path", &place, "--repeats", "1", "-q", "--json"];
    let tiny = ["experiment", "run", directory.to_str().unwrap()];
    let ran = sandbox.run(&[&tiny[..], &arguments[..]].concat());
    // Exit code 3 is allowed, because findings about this machine do not matter here.
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    let analysis = ran.json();
    assert_eq!(
        (&analysis["modelled"], &analysis["arms"][0]["completed"]),
        (&false.into(), &1.into())
    );
    assert!(sandbox.left_in_data().is_empty());
}

/// A wrong path or table is reported before any run or fit begins, and no files remain.
#[test]
fn a_place_or_table_that_is_wrong_is_said_before_anything_runs() {
    let sandbox = Sandbox::new();
    let (there, out) = (sandbox.path("."), sandbox.path("out"));
    let (there, out) = (there.display().to_string(), out.display().to_string());
    let refused = |more: &[&str]| {
        let ran = sandbox.run(&[&["experiment", "run"], more, &["--out", &out]].concat());
        assert!(!std::path::Path::new(&out).exists(), "nothing was begun");
        ran.expect(2)
    };
    let place = format!("b={there}");
    refused(&["e3", "--on", "real", "--path", "a=/not/there", "--path", &place])
        .says("place a: /not/there");
    assert!(!refused(&["e6", "--table", "nosuch=x.csv"]).stderr.contains("fitting"));
    std::fs::write(sandbox.path("bad.csv"), "a,b\n1,2\n").unwrap();
    let table = format!("raidz2={there}/bad.csv");
    refused(&["e6", "--table", &table]).says("has no column");
}

#[test]
fn the_first_experiment_tells_what_limits_its_settings() {
    let sandbox = Sandbox::new();
    let short = ["--arm", "3", "--arm", "6", "--repeats", "1", "--set", "phases.warm_up=\"5s\""];
    // The quotes around a text are optional, as in `plimsoll run`.
    let shorter = ["--set", "phases.measure=20s", "--set", "evidence.min_measure=\"20s\""];
    let head = ["experiment", "run", "e1", "-q", "--json"];
    let ran = sandbox.run(&[&head[..], &short[..], &shorter[..]].concat());
    // The figures of a short run need not be close to the published figures.
    assert!([0, 1].contains(&ran.code), "{}", ran.stderr);
    let analysis = ran.json();
    assert_eq!(analysis["arms"].as_array().unwrap().len(), 2);
    let mechanism = analysis["arms"][0]["mechanism"].to_string();
    for part in ["of reads came from", "disks were", "was queueing", "The first bottleneck is"] {
        assert!(mechanism.contains(part), "{mechanism}");
    }
    assert!(analysis["answers"].to_string().contains("0.58 %"), "the arithmetic of the CPU claim");
}

/// Writes an experiment with one table, on a model with one unknown parameter.
fn of_a_table(sandbox: &Sandbox) -> PathBuf {
    std::fs::write(sandbox.path("tiny.toml"), support::TINY_MODEL).unwrap();
    let model = sandbox.path("tiny.toml").display().to_string();
    let plan = format!(
        "version = 1\nname = \"small\"\n[target]\nmodel = {model:?}\n[workload.matrix]\nsizes = \
         [\"4KiB\", \"8KiB\"]\nreads = [100, 0]\npatterns = \"skipping\"\nskip_density = \
         0.2\nclients = 8\nfiles = 8\nfile_size = \"1GB\"\nqueue_depth = 2\n[phases]\nwarm_up = \
         \"100ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n"
    );
    // There are 16 operations in flight (8 x 2) on one core, which takes 100 us for a read and 50
    // us for a write.
    let table = "io_kib,pattern,read_percent,ops_per_s,latency_ms\n4,random,100,10000,1.6\n8,random,100,10000,1.6\n4,random,0,20000,0.8\n8,random,0,20000,0.8\n";
    let goal = |median_max: f64| {
        format!(
            "[[goal]]\ngroup = \"all\"\nfigure = \"achieved_iops_per_s\"\nmedian_max = \
             {median_max}\np90_max = 0.2\n"
        )
    };
    let experiment = format!(
        "version = 1\ntitle = \"A table\"\nabout = \"One table.\"\nrepeats = 1\njudged = \
         [\"achieved_iops_per_s\"]\n[fit]\nmodel = {model:?}\narm = \"all\"\n[[table]]\narm = \
         \"all\"\nfile = \"all.csv\"\nrole = \"input\"\noutstanding = 16\n{}[[question]]\ntext = \
         \"What do reads cost?\"\narm = \"all skipping 4KiB r100 q2\"\nover = \"all skipping 4KiB \
         r0 q2\"\nfigure = \"achieved_iops_per_s\"\n[[arm]]\nname = \"all\"\nplan = \
         \"plan.toml\"\n[[arm]]\nname = \"slower\"\nplan = \
         \"plan.toml\"\n[arm.change.target.set]\n\"path.write_us\" = 100\n",
        goal(0.05)
    );
    let directory = sandbox.path("table");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("experiment.toml"), experiment).unwrap();
    std::fs::write(directory.join("plan.toml"), plan).unwrap();
    std::fs::write(directory.join("all.csv"), table).unwrap();
    directory
}

#[test]
fn a_table_is_fitted_held_against_its_goals_and_against_itself() {
    let sandbox = Sandbox::new();
    let directory = of_a_table(&sandbox);
    let name = directory.to_str().unwrap();
    let kept = sandbox.path("kept.csv").display().to_string();
    let rows = "io_kib,read_percent,ops_per_s,latency_ms\n4,100,10000,1.6\n8,100,10000,1.6\n4,0,10000,1.6\n8,0,5000,3.2\n";
    std::fs::write(&kept, rows).unwrap();
    let more = format!("slower={kept}");
    let ran = sandbox.run(&["experiment", "run", name, "-q", "--json", "--table", &more]);
    let analysis = ran.expect(0).json();
    assert_eq!(analysis["ending"], "predicted", "{}", analysis["reason"]);
    let read_us = analysis["fitted"][0]["value"].as_f64().unwrap();
    assert!((read_us - 100.0).abs() < 3.0, "{read_us}");
    let tables = analysis["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0]["sizes_bytes"], serde_json::json!([4096, 8192]));
    assert_eq!(tables[0]["read_percents"], serde_json::json!([100.0, 0.0]));
    let score = |table: usize, key: &str| tables[table]["scores"][0][key].clone();
    assert_eq!((score(0, "role"), score(0, "rows")), ("input".into(), 4.into()));
    assert!(score(0, "model_median").as_f64().unwrap() < 0.03, "{tables:?}");
    assert_eq!(score(0, "copied_median"), Value::Null, "no other table was an input");
    assert_eq!(score(1, "role"), "kept");
    // Used as the prediction, the published figure is right in two cases and wrong by a factor of
    // three in the third case. The model is wrong in only one case.
    assert!((score(1, "copied_p90").as_f64().unwrap() - 2.4).abs() < 0.01, "{tables:?}");
    let (model, copied) = (score(1, "model_p90"), score(1, "copied_p90"));
    assert!(model.as_f64().unwrap() < copied.as_f64().unwrap());
    assert_eq!(analysis["goals"][0]["reached"], true);
    let says = analysis["arithmetic"].to_string();
    assert!(says.contains("16 to 16 operations in flight, of 16"), "{says}");
    let answers = analysis["answers"].to_string();
    assert!(answers.contains("0.50 times"), "{answers}");
    let page = std::fs::read_to_string(sandbox.bundle().join("report.html")).unwrap();
    for part in ["Key figures", "Fitted parameters", "100 % reads", "Reached"] {
        assert!(page.contains(part), "{part}");
    }
    // The fitted values stay the same when the experiment is shown again.
    let id = sandbox.bundle().file_name().unwrap().to_str().unwrap().to_owned();
    let again = sandbox.run(&["runs", "show", &id, "--json"]).expect(0).json();
    assert_eq!(again["fitted"], analysis["fitted"]);
    for (requested, says) in [
        ("slow=x", "the experiment has no arm slow"),
        ("slower", "does not have the form ARM=FILE"),
    ] {
        sandbox.run(&["experiment", "run", name, "-q", "--table", requested]).expect(2).says(says);
    }
}

#[test]
fn a_search_is_part_of_the_analysis_and_is_not_made_twice() {
    let sandbox = Sandbox::new();
    let text = EXPERIMENT
        .replace(
            "[[real]]",
            "[[arm]]\nname = \"line\"\nplan = \"line.toml\"\nsearch = { max = 32 }\n[[real]]",
        )
        .replace("text = \"Why?\"\narm = \"disk\"", "text = \"How much?\"\narm = \"line\"");
    let directory = written(&sandbox, "tiny", &text, "");
    let line = PLAN
        .replace("[target]", "[requirement]\niops = 60\nread_latency_avg = \"60ms\"\n[target]")
        .replace("min_measure = \"1s\"", "min_measure = \"1s\"\ninterval = \"50ms\"");
    std::fs::write(directory.join("line.toml"), line).unwrap();
    let tiny = directory.to_str().unwrap();
    let arms = ["--arm", "line", "--arm", "disk", "--repeats", "1", "-q", "--json"];
    let analysis =
        sandbox.run(&[&["experiment", "run", tiny], &arms[..]].concat()).expect(0).json();
    let found = &analysis["searches"][0]["found"];
    assert_eq!(
        (&analysis["searches"][0]["name"], &found["complete"]),
        (&"line".into(), &true.into())
    );
    assert!(found["load_line"]["rate_per_s"].as_f64().unwrap() > 60.0, "{found}");
    let answers = analysis["answers"].to_string();
    assert!(answers.contains("The load line") && answers.contains("60.0/s"), "{answers}");
    let experiment = sandbox.bundle();
    let page = std::fs::read_to_string(experiment.join("report.html")).unwrap();
    assert!(page.contains("Steps of search line"));
    let id = experiment.file_name().unwrap().to_str().unwrap();
    let again = sandbox.run(&["runs", "show", id, "--json"]).expect(0).json();
    assert_eq!(again["searches"][0]["found"], *found);
    let before = std::fs::read_dir(&experiment).unwrap().count();
    let resumed = [&["experiment", "run", tiny], &arms[..], &["--resume", id]].concat();
    assert_eq!(sandbox.run(&resumed).expect(0).json()["searches"][0]["found"], *found);
    assert_eq!(std::fs::read_dir(&experiment).unwrap().count(), before);
}

#[test]
fn a_shipped_experiment_gives_the_same_from_the_same_seed() {
    let sandbox = Sandbox::new();
    let short = [
        "--arm",
        "refs-16",
        "--repeats",
        "2",
        "--set",
        "phases.measure=\"500ms\"",
        "--set",
        "evidence.min_measure=\"500ms\"",
        "--set",
        "evidence.interval=\"50ms\"",
    ];
    let run = |out: &str| {
        let out = sandbox.path(out).display().to_string();
        let head = ["experiment", "run", "e3", "-q", "--json", "--out", &out];
        let ran = sandbox.run(&[&head[..], &short[..]].concat());
        assert!([0, 1].contains(&ran.code), "{}", ran.stderr);
        ran.json()
    };
    let (first, second) = (run("first"), run("second"));
    assert!(!means(&first).is_empty());
    assert_eq!(means(&first), means(&second));
    assert_eq!(first["arms"][0]["mechanism"], second["arms"][0]["mechanism"]);
}

#[test]
fn the_array_matrix_runs_on_a_real_nfs_export() {
    let server = Ganesha::start(1);
    let sandbox = Sandbox::new();
    let place = format!("a={}", server.url_text(1));
    let short = [
        "--set",
        "workload.matrix.sizes=[\"4KiB\", \"32KiB\"]",
        "--set",
        "workload.matrix.reads=[100, 0]",
        "--set",
        "phases.measure=\"500ms\"",
        "--set",
        "phases.warm_up=\"100ms\"",
        "--set",
        "evidence.min_measure=\"500ms\"",
        "--set",
        "evidence.interval=\"20ms\"",
    ];
    let head = ["experiment", "run", "e6", "--on", "real", "--path", &place, "--arm", "depth4"];
    let ran = sandbox.run(&[&head[..], &short[..], &["-q", "--json"][..]].concat());
    // Exit code 3 is allowed, because findings about this machine do not matter here.
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    let analysis = ran.json();
    let arms = analysis["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 4);
    for arm in arms {
        assert_eq!(arm["completed"], 1, "{arm}");
        // The run is too short to check its rate on a busy machine.
        assert!(arm["figures"][0]["mean"].is_number(), "{arm}");
    }
    let table = &analysis["tables"][0];
    assert_eq!((&table["group"], &table["scores"]), (&"depth4".into(), &serde_json::json!([])));
    assert!(!table["kept"].as_array().unwrap().is_empty());
    // Published tables do not affect this machine's results.
    assert_eq!(analysis["arithmetic"], serde_json::json!([]));
}

#[test]
fn the_documented_counts_are_those_of_the_list() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/experiments.md");
    let document = std::fs::read_to_string(path).unwrap();
    let listed = Sandbox::new().run(&["experiment", "list", "--json"]).expect(0).json();
    for one in listed.as_array().unwrap() {
        let row = format!("| {} |", one["name"].as_str().unwrap());
        let row = document.lines().find(|line| line.starts_with(&row)).unwrap();
        let first = |cell: &str| cell.split_whitespace().next().unwrap().parse::<u64>().unwrap();
        let cells: Vec<&str> = row.split('|').collect();
        assert_eq!(
            [first(cells[4]), first(cells[5])].map(Value::from),
            [one["arms"].clone(), one["real_arms"].clone()],
            "{row}"
        );
        assert!(one["published_figures"].as_u64().unwrap() > 0, "{one}");
    }
}
