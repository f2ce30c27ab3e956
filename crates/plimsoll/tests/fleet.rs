//! A plan on several hosts at once: agents and a NATS server of the test's own, all ended by process id.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plimsoll_fleet::local::PrivateServer;
use serde_json::Value;
use support::{OF_THE_HOST, Sandbox, json};

/// I/Os per second that each host's plan asks for: no target's limit.
const RATE: f64 = 200.0;
/// Something that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

fn plan(sandbox: &Sandbox, path: &Path, measure: &str) -> String {
    let text = format!(
        "version = 1\nname = \"together\"\ndemonstration = true\n[target]\npath = {:?}\n\
         [workload.matrix]\nfile_size = \"4MiB\"\nsizes = \"4KiB\"\nreads = 70\narrival = \"constant\"\n\
         rate = {RATE}\n[phases]\nwarm_up = \"500ms\"\nmeasure = \"{measure}\"\n[evidence]\n\
         min_measure = \"1s\"\ninterval = \"500ms\"\n",
        path.display().to_string()
    );
    let file = sandbox.path("fleet.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// A process that ends with its test.
struct Process(Child);

impl Process {
    fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn wait(&mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The only fleet's evidence below a directory.
fn fleet_in(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let fleets: Vec<PathBuf> =
        entries.filter(|path| path.join("all/fleet.json").is_file()).collect();
    assert_eq!(fleets.len(), 1, "{fleets:?}");
    fleets[0].clone()
}

fn count_of(class: &Value) -> u64 {
    class["count"].as_u64().unwrap()
}

/// Whether the machine of the test was taken away from it, as far as a verdict says.
fn was_disturbed(fleet: &Path) -> bool {
    let hosts = fs::read_dir(fleet.join("hosts")).unwrap().flatten();
    let bundles = hosts.flat_map(|host| fs::read_dir(host.path()).unwrap().flatten());
    bundles.map(|bundle| json(&bundle.path().join("verdict.json"))).any(|verdict| {
        let findings = verdict["findings"].as_array().unwrap();
        findings.iter().any(|f| OF_THE_HOST.iter().any(|host| f["rule"] == *host))
    })
}

/// That what is stated of all hosts is what their own bundles add up to, to the last I/O.
fn adds_up(fleet: &Path, hosts: usize) -> f64 {
    let stated = json(&fleet.join("all/fleet.json"));
    let verdict = json(&fleet.join("verdict.json"));
    assert_eq!(stated["hosts"].as_array().unwrap().len(), hosts, "{stated:#}");
    let window = &stated["window"];
    let (mut sum, mut latencies) = (0, 0);
    for host in stated["hosts"].as_array().unwrap() {
        assert_eq!(host["end"], "reported", "{host:#}");
        let (name, run) = (host["name"].as_str().unwrap(), &host["run"]);
        let bundle = fleet.join("hosts").join(name).join(run["run_id"].as_str().unwrap());
        let own = json(&bundle.join("run.json"));
        for class in own["classes"].as_array().unwrap() {
            sum += count_of(class) - class["drained"].as_u64().unwrap();
            latencies += count_of(class);
        }
        let starts = run["starts"].as_array().unwrap();
        assert!(starts.iter().any(|start| start["kind"] == "warm-up"), "{run:#}");
        let offsets = host["clock"].as_array().unwrap();
        for offset in offsets {
            // All hosts of the test have one clock: what is measured of it is wrong by its error at most.
            let (offset, error) = (&offset["offset_ns"], &offset["error_ns"]);
            assert!(offset.as_i64().unwrap().unsigned_abs() <= error.as_u64().unwrap(), "{host:#}");
        }
        assert_eq!(offsets.len(), 2, "before and after");
    }
    assert_eq!(window["cut"], false, "{window:#}");
    let classes = stated["classes"].as_array().unwrap();
    assert_eq!(classes.iter().map(count_of).sum::<u64>(), sum);
    let counted = |class: &Value| class["latency_count"].as_u64().unwrap();
    assert_eq!(classes.iter().map(counted).sum::<u64>(), latencies);
    let passed = verdict["passed"].as_array().unwrap();
    assert!(passed.iter().any(|rule| rule == "fleet-sums"), "{verdict:#}");
    let skew_ns = window["start_skew_ns"].as_u64().unwrap();
    let findings = verdict["findings"].as_array().unwrap();
    let told = findings.iter().any(|finding| finding["rule"] == "fleet-together");
    let error_ns = window["start_skew_error_ns"].as_u64().unwrap();
    println!("{hosts} hosts: {sum} I/Os, starts {skew_ns} ns apart, known to {error_ns} ns");
    assert!(told || skew_ns < 5_000_000 + error_ns, "{window:#}");
    verdict["total"]["ops_per_s"].as_f64().unwrap()
}

#[test]
fn one_two_and_four_agents_of_this_host_carry_what_is_asked_of_each() {
    for hosts in [1, 2, 4] {
        let sandbox = Sandbox::new();
        let plan = plan(&sandbox, &sandbox.data().join("{host}"), "3s");
        let ran = sandbox.run(&["run", &plan, "--fleet", &format!("local:{hosts}")]);
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        let fleet = fleet_in(&sandbox.path("share/plimsoll/runs"));
        let rate = adds_up(&fleet, hosts);
        let asked = RATE * hosts as f64;
        println!("{hosts} hosts: {rate:.1}/s of {asked}/s");
        assert!((rate / asked - 1.0).abs() < 0.05 || was_disturbed(&fleet), "{}", ran.stdout);
        assert!(sandbox.left_in_data().iter().all(|name| name.starts_with("local-")));
        assert!(fs::read_dir(sandbox.path("cache/plimsoll")).unwrap().next().is_none(), "scratch");
        if hosts == 2 {
            ran.says("all");
            ran.says("local-1");
            ran.says("one machine");
            what_was_left_is_judged_again_and_defended(&sandbox, &fleet);
        }
    }
}

fn what_was_left_is_judged_again_and_defended(sandbox: &Sandbox, fleet: &Path) {
    let before = fs::read_to_string(fleet.join("verdict.json")).unwrap();
    let name = fleet.file_name().unwrap().to_str().unwrap();
    sandbox.run(&["judge", name, "--json"]);
    assert_eq!(fs::read_to_string(fleet.join("verdict.json")).unwrap(), before);
    let page = fs::read_to_string(fleet.join("report.html")).unwrap();
    assert!(page.contains("local-1") && page.contains("local-2"));
    let path = fleet.join("all/fleet.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"name\": \"local-2\"", "\"name\": \"local-9\"")).unwrap();
    sandbox.run(&["judge", name]).expect(3).says("fleet.json was changed");
    fs::write(&path, &text).unwrap();
    let host = fleet.join("hosts/local-2");
    let bundle = fs::read_dir(&host).unwrap().flatten().next().unwrap().path();
    let series = fs::read_to_string(bundle.join("series.csv")).unwrap();
    fs::write(bundle.join("series.csv"), format!("{series}\n")).unwrap();
    sandbox.run(&["judge", name]).expect(3).says("series.csv was changed");
    fs::remove_dir_all(&host).unwrap();
    assert_ne!(sandbox.run(&["judge", name]).code, 0, "a host's evidence is missing");
}

#[test]
fn what_a_fleet_can_not_do_is_said_before_anything_is_started() {
    let sandbox = Sandbox::new();
    let shared = plan(&sandbox, &sandbox.data(), "3s");
    sandbox.run(&["run", &shared, "--fleet", "local:2"]).expect(2).says("{host}");
    sandbox.run(&["run", &shared, "--fleet", "local:0"]).expect(2).says("local:4");
    sandbox.run(&["run", &shared, "--fleet", "local:1", "--keep"]).expect(2).says("--keep");
    sandbox
        .run(&["run", &shared, "--fleet", "local:1", "--set", "repeat.runs=2"])
        .expect(2)
        .says("once");
    sandbox.run(&["run", &shared, "--agents", "2"]).expect(2);
    sandbox.run(&["agent", "--server", "nats://127.0.0.1:1"]).expect(2).says("--trust");
    assert!(sandbox.bundles().is_empty());
}

/// A fleet of processes: a server, a key, agents that trust it.
struct Fleet {
    sandbox: Sandbox,
    server: PrivateServer,
}

impl Fleet {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let stop = AtomicBool::new(false);
        let server = PrivateServer::start(&sandbox.path("nats"), &stop).unwrap();
        let key = sandbox.path("key");
        sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
        Self { sandbox, server }
    }

    fn agent(&self, name: &str) -> Process {
        let trust = self.sandbox.path("key.pub");
        let allow = self.sandbox.data();
        let arguments = ["agent", "--server", self.server.url(), "--name", name, "--trust"];
        let mut command = self.sandbox.command(&arguments);
        command.arg(trust).arg("--allow-path").arg(allow);
        command.env("XDG_DATA_HOME", self.sandbox.path(&format!("share-{name}")));
        command.env("XDG_STATE_HOME", self.sandbox.path(&format!("state-{name}")));
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(self.sandbox.path(&format!("log-{name}"))).unwrap());
        Process::start(command)
    }
}

#[test]
fn an_agent_that_is_killed_in_mid_run_makes_it_invalid_by_its_name() {
    let fleet = Fleet::new();
    let (sandbox, _one) = (&fleet.sandbox, fleet.agent("one"));
    let mut two = fleet.agent("two");
    let plan = plan(sandbox, &sandbox.data().join("{host}"), "5s");
    let key = sandbox.path("key").display().to_string();
    let log = sandbox.path("run.log");
    let arguments =
        ["run", &plan, "--fleet", fleet.server.url(), "--agents", "2", "--sign", &key, "--json"];
    let mut command = sandbox.command(&arguments);
    command.stdout(fs::File::create(sandbox.path("run.json")).unwrap());
    command.stderr(fs::File::create(&log).unwrap());
    let mut run = Process::start(command);
    let began = Instant::now();
    while !fs::read_to_string(&log).unwrap().contains("warm-up: all hosts begin") {
        let log = || fs::read_to_string(&log).unwrap();
        assert!(began.elapsed() < PATIENCE && run.0.try_wait().unwrap().is_none(), "{}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
    two.0.kill().unwrap();
    two.0.wait().unwrap();
    assert_eq!(run.wait(), 3, "{}", fs::read_to_string(&log).unwrap());
    let verdict = json(&sandbox.path("run.json"));
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.contains("two was lost"), "{reason}");
    assert!(verdict["total"].is_null(), "what is left of the sum is none");
    let evidence = fleet_in(&sandbox.path("share/plimsoll/runs"));
    assert!(evidence.join("hosts/one").is_dir() && !evidence.join("hosts/two").exists());
    assert!(sandbox.path("share-one/plimsoll/runs").is_dir(), "it stays on its host too");
}

/// Hosts as network namespaces on a bridge inside one more: nothing of it can be reached from outside. They are gone
/// when it is dropped.
struct Hosts {
    names: Vec<String>,
}

/// The switch's address, where the server and the coordinator are; host `i` has the one that ends in `i`.
const SWITCH: &str = "10.231.7.254";

fn ip(arguments: &str) {
    let ran = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(ran.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

impl Hosts {
    /// The switch first, then `count` hosts.
    fn new(count: usize) -> Self {
        let own = std::process::id();
        let name = |at: usize| format!("pf{own}-{at}");
        let mut hosts = Self { names: Vec::new() };
        let switch = name(0);
        ip(&format!("netns add {switch}"));
        hosts.names.push(switch.clone());
        ip(&format!("-n {switch} link set lo up"));
        ip(&format!("-n {switch} link add br0 type bridge"));
        ip(&format!("-n {switch} addr add {SWITCH}/24 dev br0"));
        ip(&format!("-n {switch} link set br0 up"));
        for at in 1..=count {
            let host = name(at);
            ip(&format!("netns add {host}"));
            hosts.names.push(host.clone());
            ip(&format!("-n {switch} link add p{at} type veth peer name eth0 netns {host}"));
            ip(&format!("-n {switch} link set p{at} master br0 up"));
            ip(&format!("-n {host} addr add 10.231.7.{at}/24 dev eth0"));
            ip(&format!("-n {host} link set lo up"));
            ip(&format!("-n {host} link set eth0 up"));
        }
        hosts
    }

    /// A command on one of them: 0 is the switch.
    fn on(&self, at: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at], program]);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn four_hosts_with_addresses_of_their_own_carry_one_load() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(4);
    let store = sandbox.path("nats");
    let mut server = hosts.on(0, "nats-server");
    server.args(["-a", SWITCH, "-p", "4222", "-js", "-sd"]).arg(&store);
    server.stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Process::start(server);
    let url = format!("nats://{SWITCH}:4222");
    let key = sandbox.path("key");
    sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
    let within = |at: usize, own: &str| {
        let mut command = hosts.on(at, env!("CARGO_BIN_EXE_plimsoll"));
        command.env("XDG_STATE_HOME", sandbox.path(&format!("state-{own}")));
        command.env("XDG_DATA_HOME", sandbox.path(&format!("share-{own}")));
        command.env("XDG_CACHE_HOME", sandbox.path(&format!("cache-{own}")));
        command.env("PLIMSOLL_CALIBRATE", "never");
        command
    };
    let agents = (1..=4).map(|at| {
        let own = format!("node{at}");
        let mut agent = within(at, &own);
        agent.args(["agent", "--server", &url, "--name", &own, "--trust"]);
        agent.arg(sandbox.path("key.pub")).arg("--allow-path").arg(sandbox.data());
        let log = fs::File::create(sandbox.path(&format!("log-{own}"))).unwrap();
        agent.stdout(Stdio::null()).stderr(log);
        // The server may need a moment: who can't reach it says so and ends.
        agent
    });
    let began = Instant::now();
    while hosts
        .on(1, "bash")
        .args(["-c", &format!(": < /dev/tcp/{SWITCH}/4222")])
        .output()
        .unwrap()
        .status
        .code()
        != Some(0)
    {
        assert!(began.elapsed() < PATIENCE, "the server does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _agents: Vec<Process> = agents.map(Process::start).collect();
    let plan = plan(&sandbox, &sandbox.data().join("{host}"), "3s");
    let mut run = within(0, "here");
    run.args(["run", &plan, "--fleet", &url, "--agents", "4", "--sign", key.to_str().unwrap()]);
    let ran = support::Ran::from(run.stdin(Stdio::null()).output().unwrap());
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    let fleet = fleet_in(&sandbox.path("share-here/plimsoll/runs"));
    let rate = adds_up(&fleet, 4);
    println!("4 namespaces: {rate:.1}/s of {}/s\n{}", RATE * 4.0, ran.stdout);
    assert!((rate / RATE / 4.0 - 1.0).abs() < 0.05 || was_disturbed(&fleet), "{}", ran.stdout);
    let stated = json(&fleet.join("all/fleet.json"));
    let addresses: Vec<&str> = stated["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["address"].as_str().unwrap())
        .collect();
    assert_eq!(addresses, ["10.231.7.1", "10.231.7.2", "10.231.7.3", "10.231.7.4"]);
    assert!(fleet.join("all/SHA256SUMS.minisig").is_file(), "it is signed");
}
