//! Failures of the server, the network, an agent (temporarily) and the coordinator during a fleet
//! run.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::fleets::{Hosts, Process, RATE, SWITCH, adds_up, fleet_in, ip, plan, was_disturbed};
use crate::support::port::free_port;
use crate::support::{Sandbox, json, signal, wait_until};

/// A server that can be restarted at the same address.
pub struct Server {
    pub process: Process,
    pub port: u16,
}

pub fn server(sandbox: &Sandbox, port: u16) -> Process {
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]);
    command.arg(sandbox.path("nats")).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(command);
    wait_until("the server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

impl Server {
    pub fn start(sandbox: &Sandbox) -> Self {
        let port = free_port();
        Self { process: server(sandbox, port), port }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

pub fn agent(sandbox: &Sandbox, url: &str, name: &str) -> Process {
    let arguments = ["agent", "--server", url, "--name", name, "--trust"];
    let command = sandbox.command(&arguments);
    Process::start(agent_with(sandbox, command, name))
}

fn agent_with(sandbox: &Sandbox, mut command: Command, name: &str) -> Command {
    command.arg(sandbox.path("key.pub")).arg("--allow-path").arg(sandbox.data());
    command.env("XDG_DATA_HOME", sandbox.path(&format!("share-{name}")));
    command.env("XDG_STATE_HOME", sandbox.path(&format!("state-{name}")));
    command.env("XDG_CACHE_HOME", sandbox.path(&format!("cache-{name}")));
    command.stdout(Stdio::null());
    command.stderr(fs::File::create(sandbox.path(&format!("log-{name}"))).unwrap());
    command
}

pub fn make_key(sandbox: &Sandbox) -> String {
    let key = sandbox.path("key").display().to_string();
    sandbox.run(&["ledger", "key", &key]).expect(0);
    key
}

/// Starts a run on two agents and waits until its warm-up begins. Its messages are in `run.log`,
/// its verdict in `run.json`.
fn begun(sandbox: &Sandbox, mut command: Command, log: &str) -> Process {
    let log = sandbox.path(log);
    command.stdout(fs::File::create(sandbox.path("run.json")).unwrap());
    command.stderr(fs::File::create(&log).unwrap());
    let mut run = Process::start(command);
    wait_until("the warm-up", || {
        let said = fs::read_to_string(&log).unwrap();
        assert!(run.0.try_wait().unwrap().is_none(), "{said}");
        said.contains("warm-up: all hosts start")
    });
    // Waits until the run is in its measured phase.
    sleep(Duration::from_millis(1_500));
    run
}

fn two_agents(sandbox: &Sandbox, url: &str, measure: &str, key: &str) -> Command {
    let plan = plan(sandbox, &sandbox.data().join("{host}"), measure);
    sandbox.command(&["run", &plan, "--fleet", url, "--agents", "2", "--sign", key, "--json"])
}

fn said(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path("run.log")).unwrap()
}

/// Checks that both hosts generated the requested load, unless the machine of the test was too
/// busy.
fn carried_all(fleet: &Path) {
    let rate = adds_up(fleet, 2);
    assert!((rate / RATE / 2.0 - 1.0).abs() < 0.05 || was_disturbed(fleet), "{rate}");
}

/// If the server hangs during a run, no evidence is lost. The server stays connected but sends
/// nothing. No host is reported as lost, neither during the measurement nor during the transfer of
/// the evidence.
#[test]
fn a_server_that_hangs_in_mid_run_costs_no_evidence() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _agents = [agent(&sandbox, &broker.url(), "one"), agent(&sandbox, &broker.url(), "two")];
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "5s", &key), "run.log");
    // The server hangs for longer than the timeout for a silent host, and until after the end of
    // the measurement.
    signal(&broker.process.0, "-STOP");
    sleep(Duration::from_secs(14));
    signal(&broker.process.0, "-CONT");
    let code = run.wait();
    let said = said(&sandbox);
    assert!([0, 3].contains(&code), "{said}");
    // The restored connection is reported, unless the hosts' queued messages arrive first and end
    // the run.
    assert!(said.contains("the NATS server does not answer"), "{said}");
    carried_all(&fleet_in(&sandbox.path("share/plimsoll/runs")));
}

/// An agent waits for its server if it starts before its network or the server is available.
#[test]
fn an_agent_that_starts_before_its_server_waits_for_it() {
    let sandbox = Sandbox::new();
    make_key(&sandbox);
    let port = free_port();
    let mut early = agent(&sandbox, &format!("nats://127.0.0.1:{port}"), "one");
    let said = || fs::read_to_string(sandbox.path("log-one")).unwrap();
    wait_until("the agent to say so", || said().contains("agent one waits until it can reach"));
    let broker = Server { process: server(&sandbox, port), port };
    wait_until("the agent", || said().contains("waits for plans"));
    let status = sandbox.run(&["fleet", "status", &broker.url(), "--json"]).expect(0).json();
    assert_eq!(status[0]["name"], "one", "{status:#}");
    assert!(early.0.try_wait().unwrap().is_none(), "{}", said());
}

/// The operator does not have to wait for an unavailable server. The hosts' evidence is fetched
/// later.
#[test]
fn a_run_that_is_interrupted_while_the_server_hangs_ends_and_is_resumed() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _agents = [agent(&sandbox, &broker.url(), "one"), agent(&sandbox, &broker.url(), "two")];
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "5s", &key), "run.log");
    signal(&broker.process.0, "-STOP");
    signal(&run.0, "-INT");
    let began = Instant::now();
    assert_eq!(run.wait(), 5, "{}", said(&sandbox));
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(said(&sandbox).contains("plimsoll run --resume"), "{}", said(&sandbox));
    signal(&broker.process.0, "-CONT");
    let id = resumable_run(&sandbox);
    let arguments = ["run", "--resume", &id, "--fleet", &broker.url(), "--sign", &key, "--json"];
    let ran = sandbox.run(&arguments);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    carried_all(&fleet_in(&sandbox.path("share/plimsoll/runs")));
}

/// Returns the name of the run that can be resumed.
fn resumable_run(sandbox: &Sandbox) -> String {
    let kept = sandbox.path("state/plimsoll/fleet-runs");
    let file = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_server_that_is_killed_and_started_again_in_mid_run_costs_no_evidence() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let mut broker = Server::start(&sandbox);
    let _agents = [agent(&sandbox, &broker.url(), "one"), agent(&sandbox, &broker.url(), "two")];
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "5s", &key), "run.log");
    broker.process.0.kill().unwrap();
    broker.process.0.wait().unwrap();
    sleep(Duration::from_secs(2));
    broker.process = server(&sandbox, broker.port);
    let code = run.wait();
    assert!([0, 3].contains(&code), "{}", said(&sandbox));
    let first = fleet_in(&sandbox.path("share/plimsoll/runs"));
    carried_all(&first);
    fs::rename(&first, sandbox.path("first")).unwrap();
    // The agents still accept plans.
    let again = two_agents(&sandbox, &broker.url(), "1s", &key).output().unwrap();
    assert!([0, 3].contains(&again.status.code().unwrap()), "{again:?}");
    adds_up(&fleet_in(&sandbox.path("share/plimsoll/runs")), 2);
}

/// A server that lost its storage, such as one in a container without a volume, knows neither the
/// stream nor the agents' subscriptions.
#[test]
fn agents_receive_plans_again_after_the_server_lost_its_storage() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let mut broker = Server::start(&sandbox);
    let _agents = [agent(&sandbox, &broker.url(), "one"), agent(&sandbox, &broker.url(), "two")];
    let says = |name: &str, words: &str| {
        let log = fs::read_to_string(sandbox.path(&format!("log-{name}"))).unwrap_or_default();
        log.contains(words)
    };
    for name in ["one", "two"] {
        wait_until("the agent", || says(name, "waits for plans"));
    }
    broker.process.0.kill().unwrap();
    broker.process.0.wait().unwrap();
    fs::remove_dir_all(sandbox.path("nats")).unwrap();
    broker.process = server(&sandbox, broker.port);
    wait_until("the subscription", || {
        ["one", "two"].iter().any(|name| says(name, "receives plans again"))
    });
    let again = two_agents(&sandbox, &broker.url(), "1s", &key).output().unwrap();
    assert!([0, 3].contains(&again.status.code().unwrap()), "{again:?}");
    adds_up(&fleet_in(&sandbox.path("share/plimsoll/runs")), 2);
}

#[test]
fn an_agent_that_is_killed_and_started_again_in_mid_run_makes_the_run_invalid() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    let mut two = agent(&sandbox, &broker.url(), "two");
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "5s", &key), "run.log");
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    let _two = agent(&sandbox, &broker.url(), "two");
    assert_eq!(run.wait(), 3, "{}", said(&sandbox));
    let verdict = json(&sandbox.path("run.json"));
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.contains("two was lost (its agent was restarted"), "{verdict:#}");
    let hosts = fleet_in(&sandbox.path("share/plimsoll/runs")).join("hosts");
    assert!(hosts.join("one").is_dir(), "the evidence of the other host is kept");
}

#[test]
fn an_agent_that_is_stopped_for_a_while_is_not_acquitted() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    let two = agent(&sandbox, &broker.url(), "two");
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "5s", &key), "run.log");
    signal(&two.0, "-STOP");
    sleep(Duration::from_secs(2));
    signal(&two.0, "-CONT");
    assert_eq!(run.wait(), 3, "{}", said(&sandbox));
    let verdict = json(&sandbox.path("run.json"));
    let kind = verdict["verdict"].as_str().unwrap();
    assert!(["INVALID", "INCONCLUSIVE"].contains(&kind), "{verdict:#}");
    assert!(verdict["reason"].as_str().unwrap().contains("two"), "{verdict:#}");
    let hosts = fleet_in(&sandbox.path("share/plimsoll/runs")).join("hosts");
    assert!(hosts.join("one").is_dir() && hosts.join("two").is_dir(), "no evidence is lost");
}

#[test]
fn a_run_whose_coordinator_was_killed_is_taken_up_again() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _agents = [agent(&sandbox, &broker.url(), "one"), agent(&sandbox, &broker.url(), "two")];
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "3s", &key), "run.log");
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    let kept = sandbox.path("state/plimsoll/fleet-runs");
    let id = resumable_run(&sandbox);
    let resume = |id: &str| {
        sandbox.run(&["run", "--resume", id, "--fleet", &broker.url(), "--sign", &key, "--json"])
    };
    resume("../key").expect(2).says("not a valid run name");
    resume("never").expect(2).says("cannot resume");
    let mut first = sandbox
        .command(&["run", "--resume", &id, "--fleet", &broker.url(), "--sign", &key])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lock = sandbox.path("state/plimsoll/fleet-locks").join(&id);
    let process = first.id().to_string();
    wait_until("the lock", || fs::read_to_string(&lock).is_ok_and(|text| text == process));
    resume(&id).expect(2).says(&format!("process {process} follows it"));
    first.kill().unwrap();
    first.wait().unwrap();
    let ran = resume(&id);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    carried_all(&fleet_in(&sandbox.path("share/plimsoll/runs")));
    assert!(fs::read_dir(&kept).unwrap().next().is_none(), "it is not under way any more");
    resume(&id).expect(2);
}

#[test]
fn hosts_whose_coordinator_is_gone_end_by_themselves_and_keep_what_they_measured() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let url = broker.url();
    let _agents = ["one", "two"].map(|name| {
        let arguments = ["agent", "--server", &url, "--name", name, "--alone-max", "3s", "--trust"];
        Process::start(agent_with(&sandbox, sandbox.command(&arguments), name))
    });
    let mut command = two_agents(&sandbox, &url, "2s", &key);
    let log = sandbox.path("run.log");
    command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
    let mut run = Process::start(command);
    wait_until("the first phase", || fs::read_to_string(&log).unwrap().contains("all hosts start"));
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    for name in ["one", "two"] {
        let log = sandbox.path(&format!("log-{name}"));
        wait_until("its end", || fs::read_to_string(&log).unwrap().contains("finished run"));
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains("no message from the coordinator for 3 s"), "{said}");
        let own = fs::read_dir(sandbox.path(&format!("share-{name}/plimsoll/runs"))).unwrap();
        let sealed = own.flatten().filter(|run| run.path().join("SHA256SUMS").is_file()).count();
        assert_eq!(sealed, 1, "{said}");
    }
    // The agents are idle and accept the next plan.
    let again = two_agents(&sandbox, &url, "1s", &key).output().unwrap();
    assert!([0, 3].contains(&again.status.code().unwrap()), "{again:?}");
    adds_up(&fleet_in(&sandbox.path("share/plimsoll/runs")), 2);
}

#[test]
fn a_network_that_is_lost_for_five_seconds_costs_nothing_and_one_for_good_its_host() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let hosts = Hosts::new(2);
    let mut command = hosts.on(0, "nats-server");
    command.args(["-a", SWITCH, "-p", "4222", "-js", "-sd"]).arg(sandbox.path("nats"));
    let _server = Process::start({
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    });
    wait_until("the server", || {
        let probe = format!(": < /dev/tcp/{SWITCH}/4222");
        hosts.on(1, "bash").args(["-c", &probe]).output().unwrap().status.success()
    });
    let url = format!("nats://{SWITCH}:4222");
    let _agents = [1, 2].map(|at| {
        let name = format!("node{at}");
        let mut command = hosts.on(at, env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["agent", "--server", &url, "--name", &name, "--trust"]);
        command.env("PLIMSOLL_CALIBRATE", "never");
        Process::start(agent_with(&sandbox, command, &name))
    });
    let run = |measure: &str, log: &str| {
        let plan = plan(&sandbox, &sandbox.data().join("{host}"), measure);
        let mut command = hosts.on(0, env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["run", &plan, "--fleet", &url, "--agents", "2", "--sign", &key, "--json"]);
        for (variable, name) in
            [("XDG_DATA_HOME", "share"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
        {
            command.env(variable, sandbox.path(name));
        }
        begun(&sandbox, command, log)
    };
    let switch = |way: &str| ip(&format!("-n {} link set p1 {way}", hosts.names[0]));
    let mut first = run("3s", "run.log");
    switch("down");
    sleep(Duration::from_secs(5));
    switch("up");
    assert!([0, 3].contains(&first.wait()), "{}", said(&sandbox));
    let fleet = fleet_in(&sandbox.path("share/plimsoll/runs"));
    carried_all(&fleet);
    fs::rename(&fleet, sandbox.path("first")).unwrap();
    let mut second = run("2s", "second.log");
    switch("down");
    assert_eq!(second.wait(), 3);
    let verdict = json(&sandbox.path("run.json"));
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    assert!(verdict["reason"].as_str().unwrap().contains("node1 was lost"), "{verdict:#}");
    assert!(verdict["total"].is_null(), "{verdict:#}");
    let own = fs::read_dir(sandbox.path("share-node1/plimsoll/runs")).unwrap();
    assert!(own.flatten().filter(|entry| entry.path().is_dir()).count() >= 2, "it keeps its own");
}

/// A killed host is removed from the live total after ten seconds, while the measurement continues.
#[test]
fn a_killed_agent_is_reported_and_counts_no_more() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    let mut two = agent(&sandbox, &broker.url(), "two");
    let mut command = two_agents(&sandbox, &broker.url(), "25s", &key);
    let port = free_port();
    command.args(["--metrics", &port.to_string()]);
    let mut run = begun(&sandbox, command, "run.log");
    let hosts = || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let known = ["one", "two"].map(|host| text.contains(&format!("host=\"{host}\"")));
        known.iter().filter(|known| **known).count()
    };
    wait_until("both hosts", || hosts() == 2);
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    let killed = std::time::Instant::now();
    wait_until("the silence", || said(&sandbox).contains("two is silent: no message for 10 s"));
    assert!(killed.elapsed() < Duration::from_secs(14), "{:?}", killed.elapsed());
    wait_until("one host less", || hosts() == 1);
    assert!(run.0.try_wait().unwrap().is_none(), "the measurement goes on");
    assert_eq!(run.wait(), 3, "{}", said(&sandbox));
    let verdict = json(&sandbox.path("run.json"));
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
}

#[test]
fn a_plan_may_stop_all_hosts_when_one_is_lost() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    let mut two = agent(&sandbox, &broker.url(), "two");
    let mut command = two_agents(&sandbox, &broker.url(), "100s", &key);
    command.args(["--set", "fleet.on_lost_host=stop"]);
    let mut run = begun(&sandbox, command, "run.log");
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    let killed = std::time::Instant::now();
    assert_eq!(run.wait(), 3, "{}", said(&sandbox));
    assert!(killed.elapsed() < Duration::from_secs(40), "{:?}", killed.elapsed());
    let verdict = json(&sandbox.path("run.json"));
    assert!(verdict["reason"].as_str().unwrap().contains("two was lost"), "{verdict:#}");
    // The evidence of the other host states that the coordinator interrupted it.
    let host = fleet_in(&sandbox.path("share/plimsoll/runs")).join("hosts/one");
    let own = fs::read_dir(host).unwrap().next().unwrap().unwrap().path();
    let end = json(&own.join("run.json"))["end"]["says"].as_str().unwrap().to_owned();
    assert!(end.contains("interrupted by the coordinator (two was lost"), "{end}");
}

/// If two coordinators want the same agent, one of them receives the reply that the agent is busy.
/// In an earlier version, this coordinator waited for 30 s and then reported the agent as lost.
#[test]
fn an_agent_that_two_coordinators_want_at_once_is_busy_for_one() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    wait_until("the agent", || {
        let seen = sandbox.run(&["fleet", "status", &broker.url(), "--json"]).json();
        seen.as_array().unwrap().len() == 1
    });
    let plan = plan(&sandbox, &sandbox.data().join("{host}"), "2s");
    let start = |number: usize| {
        let arguments = ["run", &plan, "--fleet", &broker.url(), "--agents", "1", "--sign", &key];
        let mut command = sandbox.command(&arguments);
        command.env("XDG_STATE_HOME", sandbox.path(&format!("state-{number}")));
        command.env("XDG_DATA_HOME", sandbox.path(&format!("share-{number}")));
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(sandbox.path(&format!("said-{number}"))).unwrap());
        Process::start(command)
    };
    let began = std::time::Instant::now();
    let mut both = [start(1), start(2)];
    let codes: Vec<i32> = both.iter_mut().map(Process::wait).collect();
    let said = [1, 2].map(|n| fs::read_to_string(sandbox.path(&format!("said-{n}"))).unwrap());
    assert!(codes.iter().any(|code| [0, 3].contains(code)), "{codes:?} {said:?}");
    let busy = codes.iter().position(|code| *code == 5);
    let busy = busy.unwrap_or_else(|| panic!("{codes:?} {said:?}"));
    assert!(said[busy].contains("busy with"), "{}", said[busy]);
    assert!(!said[busy].contains("lost"), "{}", said[busy]);
    assert!(began.elapsed() < Duration::from_secs(29), "{:?}", began.elapsed());
}

#[test]
fn a_killed_agent_removes_its_data_when_it_starts_again() {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let broker = Server::start(&sandbox);
    let _one = agent(&sandbox, &broker.url(), "one");
    let mut two = agent(&sandbox, &broker.url(), "two");
    let mut run = begun(&sandbox, two_agents(&sandbox, &broker.url(), "3s", &key), "run.log");
    let left = || fs::read_dir(sandbox.data().join("two")).unwrap().count();
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    assert!(left() > 0, "its data");
    let _two = agent(&sandbox, &broker.url(), "two");
    wait_until("the removal", || left() == 0);
    let log = || fs::read_to_string(sandbox.path("log-two")).unwrap();
    wait_until("its log", || log().contains("removed data that a killed agent left"));
    assert_eq!(run.wait(), 3, "{}", said(&sandbox));
}
