//! `plimsoll run` on plans with events: commands, streams that start at an event, windows.

use serde_json::Value;

use crate::support::{self, CommandOutput, Sandbox, json};

/// A load of 400 reads and writes per second for four seconds, with these events.
fn plan(sandbox: &Sandbox, requirement: &str, events: &str) -> String {
    let target = sandbox.data();
    let text = format!(
        "version = 1\nname = \"events\"\n[requirement]\n{requirement}\n{events}\n[target]\npath = {target:?}\n\
         [[workload.matrix]]\nname = \"load\"\nreads = 50\nfile_size = \"8MiB\"\narrival = \"constant\"\n\
         rate = 400\n[[workload.matrix]]\nname = \"neighbour\"\nstart = \"event:neighbour\"\n\
         file_size = \"8MiB\"\nqueue_depth = 1\nthink_time = \"1ms\"\n\
         [phases]\nwarm_up = \"500ms\"\nmeasure = \"4s\"\nverify = true\n[evidence]\nmin_measure = \"1s\"\n\
         interval = \"50ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const NEIGHBOUR: &str = "[[event]]\nname = \"neighbour\"\nat = \"2s\"\nundo_at = \"3s\"\n";

fn run(sandbox: &Sandbox, path: &str) -> (CommandOutput, Value, Value) {
    let ran = sandbox.run(&["run", path, "--json", "-q"]);
    let bundle = sandbox.bundle();
    (ran, json(&bundle.join("run.json")), json(&bundle.join("verdict.json")))
}

fn event<'v>(run: &'v Value, name: &str) -> &'v Value {
    let events = run["events"].as_array().unwrap_or_else(|| panic!("{run}"));
    events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("{run}"))
}

#[test]
fn events_happen_on_time_and_their_answers_are_evidence() {
    let sandbox = Sandbox::new();
    let (done, undone) = (sandbox.path("done"), sandbox.path("undone"));
    let events = format!(
        "{NEIGHBOUR}[[event]]\nname = \"touch\"\nat = \"1s\"\nrun = [\"sh\", \"-c\", \"echo hello; touch {}\"]\n\
         undo = [\"touch\", {undone:?}]\n[[event]]\nname = \"later\"\nafter = \"touch\"\ndelay = \"500ms\"\n\
         run = [\"true\"]\n",
        done.display()
    );
    let path = plan(&sandbox, "[requirement.during]\niops = \"10% of before\"", &events);
    let (ran, run, verdict) = run(&sandbox, &path);
    assert!(done.exists() && undone.exists(), "{}", ran.stderr);
    let phases = run["phases"].as_array().unwrap();
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
    let start_ns = measure["start_ns"].as_u64().unwrap();
    let at_s = |event: &Value| (event["at_ns"].as_u64().unwrap() - start_ns) as f64 / 1e9;
    let touch = event(&run, "touch");
    assert!((1.0..1.3).contains(&at_s(touch)), "{touch}");
    let command = &touch["command"];
    assert_eq!(
        (command["exit_code"].as_i64(), command["stdout"].as_str()),
        (Some(0), Some("hello\n"))
    );
    // Without a time the undo comes at the end of the measurement.
    let undo_ns = touch["undo_at_ns"].as_u64().unwrap() - start_ns;
    assert!((3_900_000_000..5_000_000_000).contains(&undo_ns), "{touch}");
    let command_end_s = (command["end_ns"].as_u64().unwrap() - start_ns) as f64 / 1e9;
    let later_s = at_s(event(&run, "later")) - command_end_s;
    assert!((0.5..0.8).contains(&later_s), "{later_s}");
    // The neighbour runs between its event and the undo, and only then.
    let series = std::fs::read_to_string(sandbox.bundle().join("series.csv")).unwrap();
    let rows = series.lines().filter(|line| line.contains(",neighbour.read,"));
    let times: Vec<f64> = rows
        .map(|line| line.split(',').nth(1).unwrap().parse::<u64>().unwrap())
        .map(|ns| (ns as f64 - start_ns as f64) / 1e9)
        .collect();
    assert!(times.len() >= 5, "{times:?}");
    assert!(times.iter().all(|at| (1.95..3.15).contains(at)), "{times:?}");
    let checks = verdict["checks"].as_array().unwrap();
    let iops = checks.iter().find(|check| check["name"] == "during_iops").unwrap();
    assert_eq!(iops["ok"], true, "{verdict}");
    assert_ne!(verdict["verdict"], "INVALID", "{verdict}");
    let report = std::fs::read_to_string(sandbox.bundle().join("report.html")).unwrap();
    assert!(report.contains("echo hello") && report.contains("longest outage"));
}

#[test]
fn a_command_that_fails_or_hangs_makes_the_run_invalid() {
    for (command, says) in [
        ("[\"false\"]", "it exited with code 1"),
        ("[\"/no/such/command\"]", "it could not be started"),
        ("[\"sleep\", \"600\"]\ntimeout = \"300ms\"", "it was killed after 0.3 s"),
    ] {
        let sandbox = Sandbox::new();
        let events =
            format!("{NEIGHBOUR}[[event]]\nname = \"cut\"\nat = \"1s\"\nrun = {command}\n");
        let path = plan(&sandbox, "[requirement.during]\niops = 1", &events);
        let (ran, _, verdict) = run(&sandbox, &path);
        assert_eq!(verdict["verdict"], "INVALID", "{verdict}");
        assert!(verdict["reason"].as_str().unwrap().contains(says), "{verdict}");
        assert_eq!(ran.code, 3, "{}", ran.stderr);
    }
}

#[test]
fn an_interrupted_run_undoes_its_event() {
    let sandbox = Sandbox::new();
    let (done, undone) = (sandbox.path("done"), sandbox.path("undone"));
    let events = format!(
        "{NEIGHBOUR}[[event]]\nname = \"touch\"\nat = \"200ms\"\nrun = [\"touch\", {done:?}]\n\
         undo = [\"touch\", {undone:?}]\nundo_at = \"59s\"\n"
    );
    let path = plan(&sandbox, "[requirement.during]\niops = 1", &events);
    let text =
        std::fs::read_to_string(&path).unwrap().replace("measure = \"4s\"", "measure = \"60s\"");
    std::fs::write(&path, text).unwrap();
    let mut run = sandbox.start(&["run", &path, "-q"]);
    support::wait_until("the event", || done.exists());
    support::signal(&run, "-TERM");
    run.wait().unwrap();
    assert!(undone.exists(), "the system must not stay broken");
}

#[test]
fn prompts_without_a_terminal_and_plans_that_cannot_work_are_refused_before_the_run() {
    let sandbox = Sandbox::new();
    for (events, says) in [
        (
            "[[event]]\nname = \"e\"\nat = \"1s\"\nprompt = \"Pull the disk\"\n",
            "there is no terminal",
        ),
        (
            "[[event]]\nname = \"e\"\nat = \"4s\"\nrun = [\"true\"]\n",
            "is outside the measured phase",
        ),
        (
            "[[event]]\nname = \"e\"\nafter = \"x\"\nrun = [\"true\"]\n",
            "is not an event of the plan",
        ),
    ] {
        let path =
            plan(&sandbox, "[requirement.during]\niops = 1", &format!("{NEIGHBOUR}{events}"));
        let ran = sandbox.run(&["run", &path, "-q"]);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        if says.contains("terminal") {
            continue;
        }
        for command in [vec!["plan", "check", &path], vec!["run", &path, "--dry-run"]] {
            let checked = sandbox.run(&command);
            assert!(checked.stderr.contains(says), "{command:?}: {}", checked.stderr);
            assert_ne!(checked.code, 0);
        }
    }
    assert!(sandbox.bundles().is_empty());
}
