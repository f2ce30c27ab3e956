//! Tests of `plimsoll run` with plans that contain events: commands, streams that start at an
//! event, windows.

use serde_json::Value;

use crate::support::{self, CommandOutput, Sandbox, json};

/// Writes a plan for a load of 400 reads and writes per second for four seconds, with these events.
fn plan(sandbox: &Sandbox, requirement: &str, events: &str) -> String {
    let target = sandbox.data();
    let text = format!(
        "version = 1\nname = \"events\"\n[requirement]\n{requirement}\n{events}\n[target]\npath = \
         {target:?}\n[[workload.matrix]]\nname = \"load\"\nreads = 50\nfile_size = \
         \"8MiB\"\narrival = \"constant\"\nrate = 400\n[[workload.matrix]]\nname = \
         \"neighbour\"\nstart = \"event:neighbour\"\nfile_size = \"8MiB\"\nqueue_depth = \
         1\nthink_time = \"1ms\"\n[phases]\nwarm_up = \"500ms\"\nmeasure = \"4s\"\nverify = \
         true\n[evidence]\nmin_measure = \"1s\"\ninterval = \"50ms\"\n"
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
        "{NEIGHBOUR}[[event]]\nname = \"touch\"\nat = \"1s\"\nrun = [\"sh\", \"-c\", \"echo hello; \
         touch {}\"]\nundo = [\"touch\", {undone:?}]\n[[event]]\nname = \"later\"\nafter = \
         \"touch\"\ndelay = \"500ms\"\nrun = [\"true\"]\n",
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
    // An undo without a time happens at the end of the measurement.
    let undo_ns = touch["undo_at_ns"].as_u64().unwrap() - start_ns;
    assert!((3_900_000_000..5_000_000_000).contains(&undo_ns), "{touch}");
    let command_end_s = (command["end_ns"].as_u64().unwrap() - start_ns) as f64 / 1e9;
    let later_s = at_s(event(&run, "later")) - command_end_s;
    assert!((0.5..0.8).contains(&later_s), "{later_s}");
    // The neighbour's stream only runs between its event and the undo.
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
        "{NEIGHBOUR}[[event]]\nname = \"touch\"\nat = \"200ms\"\nrun = [\"touch\", {done:?}]\nundo \
         = [\"touch\", {undone:?}]\nundo_at = \"59s\"\n"
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

/// A plan on a modelled cluster: 200 reads and writes per second for four minutes.
fn modelled(sandbox: &Sandbox, requirement: &str, events: &str) -> String {
    let text = format!(
        "version = 1\nname = \"modelled\"\nseed = 3\n{requirement}\n{events}\n[target]\nmodel = \
         \"vsan-hybrid\"\n[[workload.matrix]]\nname = \"load\"\nreads = 70\nfiles = 8\nfile_size = \
         \"1GiB\"\nclients = 8\narrival = \"poisson\"\nrate = 200\n[phases]\nwarm_up = \
         \"5s\"\nmeasure = \"4m\"\n[evidence]\nmin_measure = \"1m\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const NODE_LOST: &str =
    "[[event]]\nname = \"host 3\"\nat = \"1m\"\nundo_at = \"2m\"\nfail = \"node:3\"\n";
const LIMITS: &str = "[requirement]\n[requirement.before]\nread_latency_p99 = \
                      \"1s\"\n[requirement.during]\niops = \"50% of \
                      before\"\n[requirement.after]\nrecovery_max = \"90s\"\n";

#[test]
fn a_lost_node_of_a_model_is_judged_like_one_of_a_real_system() {
    let sandbox = Sandbox::new();
    let (ran, evidence, verdict) = run(&sandbox, &modelled(&sandbox, LIMITS, NODE_LOST));
    assert_eq!((ran.code, verdict["verdict"].as_str()), (0, Some("PASS")), "{verdict}");
    let phases = evidence["phases"].as_array().unwrap();
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
    let start_ns = measure["start_ns"].as_u64().unwrap();
    let lost = event(&evidence, "host 3");
    assert_eq!(lost["at_ns"].as_u64().unwrap() - start_ns, 60_000_000_000);
    assert_eq!(lost["undo_at_ns"].as_u64().unwrap() - start_ns, 120_000_000_000);
    let checks = verdict["checks"].as_array().unwrap();
    let recovery = checks.iter().find(|check| check["name"] == "after_recovery").unwrap();
    assert_eq!(recovery["ok"], true, "{verdict}");
    let report = std::fs::read_to_string(sandbox.bundle().join("report.html")).unwrap();
    for words in ["fail node:3", "During the event, the utilisation of ", "longest outage"] {
        assert!(report.contains(words), "{words}");
    }
    // Before the event, the rows are equal to the rows of a run without the event. After the event,
    // the run is slower.
    let rows = |bundle: &std::path::Path, from_s: u64, to_s: u64| -> Vec<String> {
        let series = std::fs::read_to_string(bundle.join("series.csv")).unwrap();
        let (from_ns, to_ns) = (start_ns + from_s * 1_000_000_000, start_ns + to_s * 1_000_000_000);
        let of_load = |line: &&str| {
            let row_ns = line.split(',').nth(1).and_then(|ns| ns.parse::<u64>().ok());
            line.contains(",load.") && row_ns.is_some_and(|ns| (from_ns..to_ns).contains(&ns))
        };
        series.lines().filter(of_load).map(str::to_owned).collect()
    };
    let undisturbed = Sandbox::new();
    let ran = undisturbed.run(&["run", &modelled(&undisturbed, "", ""), "--json", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (with, without) = (sandbox.bundle(), undisturbed.bundle());
    assert_eq!(rows(&with, 0, 60), rows(&without, 0, 60));
    let mean_ns = |bundle: &std::path::Path| {
        let sums = rows(bundle, 60, 120).into_iter().fold((0.0, 0.0), |(ns, ops), line| {
            let cell = |at: usize| line.split(',').nth(at).unwrap().parse::<f64>().unwrap();
            (ns + cell(5), ops + cell(4))
        });
        sums.0 / sums.1
    };
    assert!(mean_ns(&with) > 2.0 * mean_ns(&without), "{} {}", mean_ns(&with), mean_ns(&without));
}

#[test]
fn a_loss_beyond_the_redundancy_of_a_model_is_no_pass() {
    let two = format!(
        "{NODE_LOST}[[event]]\nname = \"host 2\"\nafter = \"host 3\"\ndelay = \"20s\"\nfail = \"node:2\"\n"
    );
    let sandbox = Sandbox::new();
    let (ran, evidence, verdict) = run(&sandbox, &modelled(&sandbox, LIMITS, &two));
    assert_eq!((ran.code, verdict["verdict"].as_str()), (5, Some("INVALID")), "{verdict}");
    assert_eq!(evidence["end"]["kind"], "io-error", "{evidence}");
    // If the window allows failed I/Os, the run continues and counts them.
    let counted = Sandbox::new();
    let limits = LIMITS.replace("iops", "errors_max = 5\niops");
    let (ran, _, verdict) = run(&counted, &modelled(&counted, &limits, &two));
    assert_eq!((ran.code, verdict["verdict"].as_str()), (1, Some("FAIL")), "{verdict}");
    let checks = verdict["checks"].as_array().unwrap();
    let errors = checks.iter().find(|check| check["name"] == "during_errors").unwrap();
    assert_eq!(errors["ok"], false, "{verdict}");
}

#[test]
fn commands_on_models_and_unknown_components_are_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    for (from, to, says) in [
        ("fail = \"node:3\"", "run = [\"true\"]", "fail = \"node:3\""),
        ("node:3", "node:7", "the components are: node:0, node:1, node:2, node:3"),
    ] {
        let path = modelled(&sandbox, LIMITS, &NODE_LOST.replace(from, to));
        for command in [vec!["run", &path, "-q"], vec!["run", &path, "--dry-run"]] {
            let ran = sandbox.run(&command);
            assert!(ran.stderr.contains(says), "{command:?}: {}", ran.stderr);
            assert_eq!(ran.code, 2, "{command:?}: {}", ran.stderr);
        }
    }
    assert!(sandbox.bundles().is_empty());
}
