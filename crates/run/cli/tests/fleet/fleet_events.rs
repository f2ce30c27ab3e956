//! Events on a fleet: each event happens once, on the host that the plan states.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fleets::{Fleet, Process, fleet_in};
use crate::support::{CommandOutput, Sandbox, json, wait_until};

/// Writes a plan for a load of 200 operations per second on each host, with this measurement time,
/// these events and these limits.
fn plan(sandbox: &Sandbox, measure: &str, requirement: &str, events: &str) -> String {
    let target = sandbox.data().join("{host}");
    let text = format!(
        "version = 1\nname = \"events\"\ndemonstration = true\n{requirement}{events}[target]\npath \
         = {target:?}\n[[workload.matrix]]\nname = \"load\"\nfile_size = \"4MiB\"\nreads = \
         70\narrival = \"constant\"\nrate = 200\n[phases]\nwarm_up = \"500ms\"\nmeasure = \
         \"{measure}\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Creates an executable script with this body and returns its path.
fn script(sandbox: &Sandbox, name: &str, body: &str) -> PathBuf {
    let path = sandbox.path(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run(sandbox: &Sandbox, plan: &str, fleet: &str) -> (CommandOutput, Value, Value) {
    let ran = sandbox.run(&["run", plan, "--fleet", fleet]);
    let bundle = fleet_in(&sandbox.path("share/plimsoll/runs"));
    (ran, json(&bundle.join("all/fleet.json")), json(&bundle.join("verdict.json")))
}

fn event<'v>(fleet: &'v Value, name: &str) -> &'v Value {
    let events = fleet["events"].as_array().unwrap_or_else(|| panic!("{fleet:#}"));
    events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("{fleet:#}"))
}

fn host<'v>(fleet: &'v Value, name: &str) -> &'v Value {
    let hosts = fleet["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == name).unwrap_or_else(|| panic!("{fleet:#}"))
}

/// Returns the seconds from the start of the common window to the event.
fn at_s(fleet: &Value, event: &Value) -> f64 {
    let start_ns = fleet["window"]["start_ns"].as_f64().unwrap();
    (event["at_ns"].as_f64().unwrap() - start_ns) / 1e9
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn an_event_happens_once_on_its_host_and_windows_are_of_the_sum() {
    let sandbox = Sandbox::new();
    let (here, there) = (sandbox.path("here"), sandbox.path("there"));
    let note = script(&sandbox, "note", &format!("echo $PPID >> {}", there.display()));
    let events = format!(
        "[[event]]\nname = \"here\"\nat = \"1s\"\nrun = [\"sh\", \"-c\", \"echo hello; echo x >> \
         {}\"]\nundo = [\"rm\", {here:?}]\nundo_at = \"1500ms\"\n[[event]]\nname = \"there\"\nat = \
         \"2s\"\nhost = \"local-2\"\nrun = [{note:?}]\n[[event]]\nname = \"later\"\nafter = \
         \"there\"\ndelay = \"500ms\"\nhost = \"local-2\"\nrun = [{note:?}]\n",
        here.display()
    );
    let limits = "[requirement.during]\niops = \"10% of before\"\noutage_max = \
                  \"2s\"\n[requirement.before]\niops = 150\n";
    let plan = plan(&sandbox, "4s", limits, &events);
    let (ran, fleet, verdict) = run(&sandbox, &plan, "local:3");
    assert_eq!(lines(&there), 2, "{}", ran.stderr);
    assert!(!here.exists(), "it was undone");
    let [here, there, later] = ["here", "there", "later"].map(|name| event(&fleet, name));
    assert_eq!((&here["host"], &there["host"]), (&Value::Null, &Value::from("local-2")));
    assert_eq!(
        (&here["command"]["exit_code"], &here["command"]["stdout"]),
        (&0.into(), &"hello\n".into())
    );
    assert!((0.98..1.4).contains(&at_s(&fleet, here)), "{here:#}");
    assert!((1.98..2.4).contains(&at_s(&fleet, there)), "{there:#}");
    assert!((2.48..3.4).contains(&at_s(&fleet, later)), "{later:#}");
    assert_eq!(later["command"]["exit_code"], 0);
    let checks = verdict["checks"].as_array().unwrap();
    let check = |name: &str| {
        let of = checks.iter().filter(|check| check["name"] == name).collect::<Vec<_>>();
        assert_eq!(of.len(), 1, "{name}: {verdict:#}");
        of[0]
    };
    // With three hosts, both the limit of a host and the rate are multiplied by three.
    let before = check("before_iops");
    assert_eq!(before["limit_per_s"], 450.0, "{before:#}");
    assert!((before["measured_per_s"].as_f64().unwrap() / 600.0 - 1.0).abs() < 0.1, "{before:#}");
    assert_eq!(
        (&check("during_iops")["ok"], &check("during_outage")["ok"]),
        (&true.into(), &true.into())
    );
    assert_ne!(verdict["verdict"], "INVALID", "{verdict:#}");
    for says in ["later on local-2", "all hosts: the limit is 10 % of the value before the event"] {
        ran.says(says);
    }
    let bundle = fleet_in(&sandbox.path("share/plimsoll/runs"));
    let report = fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(report.contains("echo hello") && report.contains("Output of the commands"));
    sandbox.run(&["judge", bundle.to_str().unwrap()]).says("later on local-2");
}

#[test]
fn streams_of_an_event_start_on_all_hosts_at_its_time() {
    let sandbox = Sandbox::new();
    let events = "[[event]]\nname = \"backup\"\nat = \"1s\"\nundo_at = \"2s\"\n";
    let plan = plan(&sandbox, "3s", "[requirement]\niops = 1\n", events);
    let neighbour = "[[workload.matrix]]\nname = \"backup\"\nstart = \"event:backup\"\nfile_size = \
                     \"4MiB\"\nqueue_depth = 1\nthink_time = \"1ms\"\nrequirement = { \
                     read_latency_avg = \"5s\" }\n[phases]";
    let text = fs::read_to_string(&plan).unwrap().replace("[phases]", neighbour);
    fs::write(&plan, text).unwrap();
    let (_, fleet, verdict) = run(&sandbox, &plan, "local:2");
    assert!((0.98..1.2).contains(&at_s(&fleet, event(&fleet, "backup"))), "{fleet:#}");
    let bundle = fleet_in(&sandbox.path("share/plimsoll/runs"));
    let start_ns = fleet["window"]["start_ns"].as_f64().unwrap();
    let series = |file: PathBuf, start_ns: f64| -> Vec<f64> {
        let text = fs::read_to_string(file).unwrap();
        let rows = text.lines().filter(|line| line.contains(",backup.read,"));
        rows.map(|line| (line.split(',').nth(1).unwrap().parse::<f64>().unwrap() - start_ns) / 1e9)
            .collect()
    };
    let mut all = vec![series(bundle.join("all/series.csv"), start_ns)];
    for name in ["local-1", "local-2"] {
        let run = &host(&fleet, name)["run"];
        let phases = run["phases"].as_array().unwrap();
        let measure = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
        let own_ns = measure["start_ns"].as_f64().unwrap() - run["start_ns"].as_f64().unwrap();
        let file = bundle.join("hosts").join(name).join(run["run_id"].as_str().unwrap());
        all.push(series(file.join("series.csv"), own_ns));
    }
    for times in all {
        assert!(times.len() >= 5 && times.iter().all(|at| (0.9..2.2).contains(at)), "{times:?}");
    }
    let checks = verdict["checks"].as_array().unwrap();
    let own = checks.iter().find(|check| check["name"] == "backup: read_latency_avg").unwrap();
    assert_eq!(own["ok"], true, "{verdict:#}");
}

/// Runs a fleet of three agents on this host. An event's command makes the last agent kill itself.
fn with_a_killed_agent(expect_lost: &str) -> (Sandbox, CommandOutput, Value, Value) {
    let sandbox = Sandbox::new();
    let kill = script(&sandbox, "kill-agent", "kill -KILL $PPID");
    let events = format!(
        "[[event]]\nname = \"power off\"\nat = \"3s\"\nhost = \"local-3\"\nrun = [{kill:?}]\n{expect_lost}"
    );
    let limits = "[requirement.during]\niops = \"90% of before\"\n";
    let plan = plan(&sandbox, "6s", limits, &events);
    let (ran, fleet, verdict) = run(&sandbox, &plan, "local:3");
    (sandbox, ran, fleet, verdict)
}

#[test]
fn a_host_that_dies_with_its_event_is_part_of_the_test() {
    let (_sandbox, ran, fleet, verdict) = with_a_killed_agent("expect_lost = \"local-3\"\n");
    assert_ne!(verdict["verdict"], "INVALID", "{verdict:#}\n{}", ran.stderr);
    assert_eq!(fleet["ended_early"], "", "the run goes on");
    let lost = host(&fleet, "local-3");
    assert_eq!((&lost["end"], &lost["run"]), (&"lost-as-expected".into(), &Value::Null));
    let until = &lost["until_lost"];
    assert!((until["ops_per_s"].as_f64().unwrap() / 200.0 - 1.0).abs() < 0.2, "{lost:#}");
    let off = event(&fleet, "power off");
    assert!((2.98..3.4).contains(&at_s(&fleet, off)), "{off:#}");
    let heard_s = (until["heard_ns"].as_f64().unwrap() - off["at_ns"].as_f64().unwrap()) / 1e9;
    assert!((-3.0..1.5).contains(&heard_s), "{lost:#}");
    for name in ["local-1", "local-2"] {
        assert_eq!(host(&fleet, name)["end"], "reported");
        let run = &host(&fleet, name)["run"];
        assert!(
            run["measured_ns"].as_f64().unwrap() > 5.9e9,
            "they measured to their end: {run:#}"
        );
    }
    // The totals before and during the event only include the hosts that stayed connected.
    let checks = verdict["checks"].as_array().unwrap();
    let during = checks.iter().find(|check| check["name"] == "during_iops").unwrap();
    assert_eq!(during["ok"], true, "{verdict:#}");
    assert!((during["measured_per_s"].as_f64().unwrap() / 400.0 - 1.0).abs() < 0.1, "{during:#}");
    let total = verdict["total"]["ops_per_s"].as_f64().unwrap();
    assert!((total / 400.0 - 1.0).abs() < 0.1, "{verdict:#}");
    ran.says("Host local-3 was lost with event \"power off\", as expected");
    ran.says("lost as expected; figures end at the loss");
    assert!(ran.stderr.contains("the other hosts continue"), "{}", ran.stderr);
}

/// The coordinator runs an event's command that kills an agent. A file on this host contains the
/// agent's process id.
#[test]
fn an_event_of_the_coordinator_may_stop_any_host() {
    let fleet = Fleet::new();
    let (sandbox, key) = (&fleet.sandbox, fleet.sandbox.path("key").display().to_string());
    let agents = ["one", "two", "three"].map(|name| fleet.agent(name));
    let pid = sandbox.path("three.pid");
    fs::write(&pid, agents[2].0.id().to_string()).unwrap();
    let kill = script(sandbox, "kill-three", &format!("kill -KILL $(cat {})", pid.display()));
    let events = format!(
        "[[event]]\nname = \"cut\"\nat = \"2s\"\nrun = [{kill:?}]\nexpect_lost = [\"three\"]\n"
    );
    let plan = plan(sandbox, "4s", "", &events);
    let url = fleet.server.url();
    let ran = sandbox.run(&["run", &plan, "--fleet", url, "--agents", "3", "--sign", &key]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let bundle = fleet_in(&sandbox.path("share/plimsoll/runs"));
    let stated = json(&bundle.join("all/fleet.json"));
    assert_eq!(host(&stated, "three")["end"], "lost-as-expected", "{stated:#}");
    assert_eq!(event(&stated, "cut")["command"]["exit_code"], 0);
    assert_ne!(json(&bundle.join("verdict.json"))["verdict"], "INVALID", "{}", ran.stdout);
    ran.says("Host three was lost with event \"cut\", as expected");
}

#[test]
fn a_host_that_dies_unexpectedly_or_does_not_die_makes_the_run_invalid() {
    let (_sandbox, ran, fleet, verdict) = with_a_killed_agent("");
    assert_eq!((&verdict["verdict"], ran.code), (&"INVALID".into(), 3), "{verdict:#}");
    assert_eq!(host(&fleet, "local-3")["end"], "lost");
    assert!(verdict["total"].is_null(), "{verdict:#}");
    ran.says("local-3 was lost");

    let sandbox = Sandbox::new();
    let events = "[[event]]\nname = \"power off\"\nat = \"1s\"\nrun = [\"true\"]\nexpect_lost = [\"local-2\"]\n";
    let plan = plan(&sandbox, "2s", "", events);
    let (ran, fleet, verdict) = run(&sandbox, &plan, "local:2");
    assert_eq!((&verdict["verdict"], ran.code), (&"INVALID".into(), 3), "{verdict:#}");
    assert_eq!(host(&fleet, "local-2")["end"], "reported");
    ran.says("event \"power off\" should have stopped local-2");
}

#[test]
fn a_command_that_fails_on_any_host_makes_the_run_invalid() {
    for place in ["", "host = \"local-1\"\n"] {
        let sandbox = Sandbox::new();
        let events = format!("[[event]]\nname = \"cut\"\nat = \"1s\"\n{place}run = [\"false\"]\n");
        let plan = plan(&sandbox, "2s", "[requirement.during]\niops = 1\n", &events);
        let (ran, _, verdict) = run(&sandbox, &plan, "local:2");
        assert_eq!((&verdict["verdict"], ran.code), (&"INVALID".into(), 3), "{verdict:#}");
        ran.says("event \"cut\": its command failed: it exited with code 1");
    }
}

#[test]
fn plans_that_no_fleet_can_execute_are_refused_before_the_run() {
    let sandbox = Sandbox::new();
    let refused = |events: &str, more: &[&str], says: &str| {
        let plan = plan(&sandbox, "4s", "", events);
        let ran = sandbox.run(&[&["run", &plan, "-q"], more].concat());
        assert_eq!(ran.code, 2, "{says}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    };
    let local = ["--fleet", "local:2"];
    let event = |more: &str| format!("[[event]]\nname = \"e\"\nat = \"1s\"\n{more}\n");
    refused(
        &event("run = [\"true\"]\nhost = \"local-9\""),
        &local,
        "host local-9, which does not take part",
    );
    refused(
        &event("run = [\"true\"]\nexpect_lost = [\"local-1\", \"local-2\"]"),
        &local,
        "stop all hosts",
    );
    refused(&event("prompt = \"Pull the disk\""), &local, "there is no terminal");
    refused(
        &event("run = [\"true\"]\nhost = \"local-1\""),
        &[],
        "refers to a host of a fleet, but no fleet was given",
    );
    assert!(sandbox.bundles().is_empty());
}

/// An operator can answer the prompt of a fleet run from another terminal, although the run has no
/// bundle until it ends.
#[test]
fn an_operator_answers_the_prompt_of_a_fleet_from_another_terminal() {
    let sandbox = Sandbox::new();
    let events = "[[event]]\nname = \"pull\"\nat = \"500ms\"\nprompt = \"Pull disk 5\"\n";
    let plan = plan(&sandbox, "10s", "", events);
    // A pseudo-terminal on which the operator enters nothing.
    let mut command = std::process::Command::new("script");
    let plimsoll = env!("CARGO_BIN_EXE_plimsoll");
    let line = format!("{plimsoll} run {plan} --fleet local:2");
    command.args(["-qefc", &line, "/dev/null"]).current_dir(sandbox.path("."));
    command.stdout(std::process::Stdio::null());
    for (name, value) in sandbox.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut run = Process::start(command);
    let prompts = || {
        let entries = fs::read_dir(sandbox.path("state/plimsoll/prompts")).into_iter().flatten();
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.starts_with('.')).collect::<Vec<_>>()
    };
    wait_until("the prompt", || !prompts().is_empty());
    let name = prompts().remove(0);
    sandbox.run(&["mark", "nothing"]).expect(2);
    sandbox.run(&["mark", &name]).expect(0).says("answered: Pull disk 5");
    sandbox.run(&["mark", &name]).expect(2);
    run.wait();
    let fleet = json(&fleet_in(&sandbox.path("share/plimsoll/runs")).join("all/fleet.json"));
    assert!((0.5..9.9).contains(&at_s(&fleet, event(&fleet, "pull"))), "{fleet:#}");
    assert!(prompts().is_empty());
}

/// The operator of an agent decides which commands it runs. Commands for other hosts do not matter.
#[test]
fn an_agent_refuses_a_command_that_its_operator_did_not_allow() {
    let fleet = Fleet::new();
    let (sandbox, key) = (&fleet.sandbox, fleet.sandbox.path("key").display().to_string());
    let file = sandbox.path("touched");
    let allowed = format!("touch {}", file.display());
    let agents = |more: &[&str]| [fleet.agent("one"), fleet.agent_with("two", more)];
    let run = |host: &str, agents: [Process; 2]| {
        let events = format!(
            "[[event]]\nname = \"e\"\nat = \"1s\"\nhost = {host:?}\nrun = [\"touch\", {file:?}]\n"
        );
        let plan = plan(sandbox, "2s", "", &events);
        let url = fleet.server.url();
        let ran = sandbox.run(&["run", &plan, "--fleet", url, "--agents", "2", "--sign", &key]);
        drop(agents);
        ran
    };
    let ran = run("two", agents(&[]));
    let ran = ran.expect(2);
    ran.says("agent two refused the plan");
    ran.says("which no --allow-event allows");
    assert!(!file.exists());
    let ran = run("two", agents(&["--allow-event", &allowed]));
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    assert!(file.exists(), "agent two runs it, and agent one accepts the plan without it");
    fs::remove_file(&file).unwrap();
    // The operator allowed the command on agent two, but not on agent one.
    run("one", agents(&["--allow-event", &allowed])).expect(2).says("agent one refused the plan");
    assert!(!file.exists());
}
