//! Tests of `plimsoll sweep`: a small sweep is run, interrupted and resumed, and its result is
//! printed in all formats.

use std::time::{Duration, Instant};

use crate::support::{CommandOutput, Sandbox, json, names};
use serde_json::Value;

/// Writes a plan for a sweep on files: two block sizes and two read shares, with half a second for
/// each point.
fn plan(sandbox: &Sandbox) -> String {
    let target = sandbox.path("target");
    std::fs::create_dir_all(&target).unwrap();
    let text = format!(
        "version = 1\nname = \"matrix\"\nseed = 3\n[target]\npath = \
         {target:?}\n[workload.matrix]\nsizes = [\"4KiB\", \"32KiB\"]\nreads = [75, 0]\nfile_size = \
         \"8MiB\"\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"600ms\"\n[evidence]\nmin_measure = \
         \"500ms\"\ninterval = \"20ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// On a shared machine, points may be unsteady. The sweep then has figures, but no verdict.
fn ended(ran: CommandOutput) -> CommandOutput {
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn experiments(sandbox: &Sandbox) -> Vec<std::path::PathBuf> {
    let all = sandbox.bundles().into_iter();
    all.filter(|path| path.join("experiment.json").is_file()).collect()
}

#[test]
fn a_small_sweep_is_one_table_in_every_form() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox);
    let dry = sandbox.run(&["sweep", &path, "--dry-run"]).expect(0);
    dry.says("4 points of 700 ms: 2.8 s, plus the time for creating 8 MiB of data once");
    assert!(names(&sandbox.path("target")).is_empty());
    let ran = ended(sandbox.run(&["sweep", &path, "--json"]));
    ran.says("point 4 of 4: random 32KiB r0 q4");
    let sweep = ran.json();
    let points = sweep["points"].as_array().unwrap();
    let labels: Vec<&str> = points.iter().map(|p| p["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels,
        ["random 4KiB r75 q4", "random 4KiB r0 q4", "random 32KiB r75 q4", "random 32KiB r0 q4"]
    );
    for point in points {
        let figure = |name: &str| point[name].as_f64().unwrap_or(0.0);
        let rate = figure("rate_per_s");
        assert!(rate > 0.0 && figure("latency_ns_avg") > 0.0, "{point}");
        let bandwidth = rate * figure("size_bytes");
        assert!((figure("bandwidth_bytes_per_s") / bandwidth - 1.0).abs() < 1e-6, "{point}");
        let data = figure("read_rate_per_s") + figure("write_rate_per_s");
        assert!((data / rate - 1.0).abs() < 1e-6, "{point}");
        let share = figure("read_rate_per_s") / rate * 100.0;
        assert!((share - figure("read_percent")).abs() < 2.0, "{point}");
    }
    let remembered = sweep["remember"].as_array().unwrap();
    assert!(remembered.iter().any(|r| r["name"] == "4 KiB random, 75 % reads, depth 4"));
    assert!(remembered.iter().any(|r| r["name"] == "32 KiB random, 75 % reads, depth 4"));
    assert!(names(&sandbox.path("target")).is_empty(), "the data was removed");
    let reported = |form: &str| {
        ended(sandbox.run(&["sweep", &path, "--show-latest", "--format", form])).stdout
    };
    assert_eq!(reported("csv").lines().count(), 5, "a heading and four points");
    assert!(reported("markdown").contains("## Key figures"));
    assert!(reported("html").contains("map-rate-random-4"));
    let text = reported("text");
    for part in ["Key figures", "random, queue depth 4: operations per second", "75 %"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    // Text output shows a map as a table with a heading and a row for each read share.
    let maps = reported("markdown").matches("| reads | 4 KiB | 32 KiB |").count();
    assert_eq!(maps, 3, "{}", reported("markdown"));

    let [experiment] = &experiments(&sandbox)[..] else { panic!("one experiment") };
    let id = experiment.file_name().unwrap().to_str().unwrap();
    assert_eq!(sandbox.run(&["runs", "show", id, "--json"]).expect(0).json(), sweep);
    let record = json(&experiment.join("experiment.json"));
    assert_eq!((&record["kind"], record["runs"].as_array().unwrap().len()), (&"sweep".into(), 4));
    let page = std::fs::read_to_string(experiment.join("report.html")).unwrap();
    for id in ["map-rate-random-4", "map-latency-random-4", "lines-rate-random-4", "sweep-scatter"]
    {
        assert!(page.contains(id), "{id}");
    }
    assert!(page.contains("Key figures"));
    // All points use the test data that the first point created.
    let runs = record["runs"].as_array().unwrap();
    let run = |at: usize| -> Value {
        json(&experiment.join(runs[at]["run_id"].as_str().unwrap()).join("run.json"))
    };
    assert_eq!(run(0)["phases"][0]["kind"], "create");
    assert_ne!(run(1)["phases"][0]["kind"], "create");
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_stopped() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox);
    let child = sandbox.start(&["sweep", &path, "--json"]);
    let start = Instant::now();
    let points = || -> usize {
        let all = experiments(&sandbox);
        let Some(text) =
            all.first().and_then(|e| std::fs::read_to_string(e.join("experiment.json")).ok())
        else {
            return 0;
        };
        let record: Value = serde_json::from_str(&text).unwrap();
        record["result"]["points"].as_array().unwrap().len()
    };
    while points() < 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "no point was measured");
        std::thread::sleep(Duration::from_millis(10));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(child.id() as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let first = points();
    assert!((1..4).contains(&first), "{first}");
    let again = ended(sandbox.run(&["sweep", &path, "--json"]));
    again.says(&format!("{} of 4 points remaining", 4 - first));
    assert_eq!(again.json()["points"].as_array().unwrap().len(), 4);
    assert_eq!(experiments(&sandbox).len(), 1, "it is one experiment");
    // A complete sweep cannot be resumed.
    sandbox.run(&["sweep", &path, "--dry-run"]).expect(0).says("4 points of");
}

#[test]
fn flags_make_a_plan_and_wrong_ones_are_said() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let on = target.display().to_string();
    let flags = ["sweep", "--path", &on, "--sizes", "4KiB..16KiB,1MiB", "--reads", "100,0"];
    let more = ["--patterns", "random,sequential", "--file-size", "8MiB", "--quick", "--dry-run"];
    let all: Vec<&str> = flags.into_iter().chain(more).collect();
    sandbox.run(&all).expect(0).says("16 points of 6 s: 96 s");
    // `--set` changes the plan of a sweep like any other plan.
    let set = |field| all.iter().copied().chain(["--set", field]).collect::<Vec<_>>();
    sandbox.run(&set("phases.warm_up=500ms")).expect(0).says("16 points of 5.5 s: 88 s");
    sandbox.run(&set("phases.warm=500ms")).expect(2).says("phases.warm");
    sandbox.run(&["sweep"]).expect(2).says("nothing to sweep");
    sandbox.run(&["sweep", "--path", &on, "--sizes", "4"]).expect(2);
    sandbox.run(&["sweep", "--path", &on, "--patterns", "zigzag"]).expect(2).says("zigzag");
}
