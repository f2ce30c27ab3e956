//! Random schedules of failures on a fleet of three hosts with a real server. No evidence may be
//! lost, no total may omit a host silently, every run must state why it ended, and the fleet must
//! accept the next plan. `benches/fleet-schedules` runs any number of schedules. The seed alone
//! determines a schedule.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::fleets::{Hosts, Process, SWITCH, adds_up, ip, plan};
use crate::support::{Sandbox, json, signal, tool, wait_until};
use serde_json::Value;

const HOSTS: usize = 3;
/// Time limit for a run with all its outages. A host counts as lost after 10 s; the limit allows
/// two such timeouts and the time to report them.
const ENDS_WITHIN: Duration = Duration::from_secs(150);
/// Time limit for the fleet to accept the next plan.
const FREE_WITHIN: Duration = Duration::from_secs(120);
/// Failures occur within this time after the start of the command. They may therefore affect the
/// choice of agents or the transfer of the evidence.
const COME_WITHIN_MS: u64 = 8_000;

/// A failure. Hosts are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    AgentKilled(usize),
    AgentStarted(usize),
    AgentStopped(usize, Duration),
    NetworkAway(usize, Duration),
    NetworkGone(usize),
    DiskFull(usize),
    BrokerAway(Duration),
    BrokerHangs(Duration),
    CoordinatorAway(Duration),
    CoordinatorStopped(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentKilled(at) => write!(f, "node{at} is killed"),
            Self::AgentStarted(at) => write!(f, "node{at} is killed and started again"),
            Self::AgentStopped(at, time) => write!(f, "node{at} is stopped for {time:?}"),
            Self::NetworkAway(at, time) => write!(f, "node{at} has no network for {time:?}"),
            Self::NetworkGone(at) => write!(f, "node{at} has no network any more"),
            Self::DiskFull(at) => write!(f, "node{at}'s disk is full"),
            Self::BrokerAway(time) => write!(f, "the server is killed, and back after {time:?}"),
            Self::BrokerHangs(time) => write!(f, "the server is stopped for {time:?}"),
            Self::CoordinatorAway(time) => {
                write!(f, "the coordinator is killed, and taken up after {time:?}")
            }
            Self::CoordinatorStopped(time) => write!(f, "the coordinator is stopped for {time:?}"),
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn time(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(from_ms + self.below(to_ms - from_ms))
    }

    fn failure(&mut self) -> Failure {
        let at = 1 + self.below(HOSTS as u64) as usize;
        match self.below(8) {
            0 => Failure::AgentKilled(at),
            1 => Failure::AgentStarted(at),
            2 => Failure::AgentStopped(at, self.time(300, 4_000)),
            3 => Failure::NetworkAway(at, Duration::from_secs(5)),
            4 => Failure::NetworkGone(at),
            5 => Failure::DiskFull(at),
            6 => match (self.time(300, 4_000), self.below(2)) {
                (time, 0) => Failure::BrokerAway(time),
                // The outage is longer than the timeout for a silent host.
                (time, _) => Failure::BrokerHangs(time * 4),
            },
            _ => match (self.time(300, 4_000), self.below(2)) {
                (time, 0) => Failure::CoordinatorAway(time),
                (time, _) => Failure::CoordinatorStopped(time * 4),
            },
        }
    }
}

/// Generates one to three failures with their times.
fn schedule(seed: u64) -> Vec<(Duration, Failure)> {
    let mut draw = Draw(seed);
    let count = 1 + draw.below(3);
    let mut all: Vec<(Duration, Failure)> = (0..count)
        .map(|_| (Duration::from_millis(draw.below(COME_WITHIN_MS)), draw.failure()))
        .collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// A small disk of one host, which is unmounted when this value is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf) -> Self {
        fs::create_dir(&at).unwrap();
        tool("mount", &["-t", "tmpfs", "-o", "size=32m", "none", at.to_str().unwrap()]);
        Self(at)
    }

    fn fill(&self) {
        // Fills the disk completely.
        let _ = Command::new("dd")
            .args(["if=/dev/zero", "bs=64k", &format!("of={}", self.0.join("fill").display())])
            .stderr(Stdio::null())
            .status();
    }

    fn free(&self) {
        let _ = fs::remove_file(self.0.join("fill"));
    }

    /// Returns the sealed bundles on this disk.
    fn sealed(&self) -> Vec<PathBuf> {
        let places = ["share/plimsoll/runs", "state/plimsoll/runs", "cache/plimsoll/runs"];
        let runs = places.iter().flat_map(|place| fs::read_dir(self.0.join(place)));
        let runs = runs.flatten().flatten().map(|entry| entry.path());
        runs.filter(|path| path.join("SHA256SUMS").is_file()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Continues a stopped process, unless it has exited.
fn go_on(process: Option<&mut Process>) {
    if let Some(process) = process
        && process.0.try_wait().unwrap().is_none()
    {
        signal(&process.0, "-CONT");
    }
}

/// Three hosts, a server and a coordinator, each in its own network namespace.
struct Scene {
    // Fields are dropped in this order: processes must end before the resources that they use are
    // removed.
    broker: Option<Process>,
    agents: Vec<Option<Process>>,
    coordinator: Option<Process>,
    disks: Vec<Disk>,
    hosts: Hosts,
    sandbox: Sandbox,
    key: String,
    /// Hosts that were killed or could not write; their evidence is not required.
    excused: Vec<bool>,
    runs: u32,
    /// True if the run was resumed.
    resumed: bool,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let key = sandbox.path("key").display().to_string();
        sandbox.run(&["ledger", "key", &key]).expect(0);
        let disks = (1..=HOSTS).map(|at| Disk::mount(sandbox.path(&format!("node{at}")))).collect();
        let hosts = Hosts::new(HOSTS);
        let agents = (0..HOSTS).map(|_| None).collect();
        let (broker, coordinator) = (None, None);
        let excused = vec![false; HOSTS];
        let mut scene = Self {
            broker,
            agents,
            coordinator,
            disks,
            hosts,
            sandbox,
            key,
            excused,
            runs: 0,
            resumed: false,
        };
        scene.start_broker();
        (1..=HOSTS).for_each(|at| scene.start_agent(at));
        scene
    }

    fn url() -> String {
        format!("nats://{SWITCH}:4222")
    }

    fn start_broker(&mut self) {
        let mut command = self.hosts.on(0, "nats-server");
        command.args(["-a", SWITCH, "-p", "4222", "-js", "-sd"]).arg(self.sandbox.path("nats"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.broker = Some(Process::start(command));
        let probe = format!(": < /dev/tcp/{SWITCH}/4222");
        wait_until("the server", || {
            self.hosts.on(0, "bash").args(["-c", &probe]).output().unwrap().status.success()
        });
    }

    fn start_agent(&mut self, at: usize) {
        let name = format!("node{at}");
        let home = &self.disks[at - 1].0;
        let mut command = self.hosts.on(at, env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["agent", "--server", &Self::url(), "--name", &name, "--trust"]);
        command.arg(self.sandbox.path("key.pub")).arg("--allow-path").arg(self.sandbox.data());
        command.env("PLIMSOLL_CALIBRATE", "never");
        for (variable, place) in [("DATA", "share"), ("STATE", "state"), ("CACHE", "cache")] {
            command.env(format!("XDG_{variable}_HOME"), home.join(place));
        }
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log(at)).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        self.agents[at - 1] = Some(Process::start(command));
    }

    fn log(&self, at: usize) -> PathBuf {
        self.sandbox.path(&format!("log-node{at}"))
    }

    fn begin(&mut self, arguments: &[&str]) {
        self.runs += 1;
        let mut command = self.hosts.on(0, env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["run"]).args(arguments);
        command.args(["--fleet", &Self::url(), "--sign", &self.key, "--json"]);
        for (variable, place) in [("DATA", "share"), ("STATE", "state"), ("CACHE", "cache")] {
            command.env(format!("XDG_{variable}_HOME"), self.sandbox.path(place));
        }
        command.stdout(fs::File::create(self.said("json")).unwrap());
        command.stderr(fs::File::create(self.said("log")).unwrap());
        self.coordinator = Some(Process::start(command));
    }

    fn said(&self, what: &str) -> PathBuf {
        self.sandbox.path(&format!("run-{}.{what}", self.runs))
    }

    fn run_plan(&mut self, measure: &str) {
        let plan = plan(&self.sandbox, &self.sandbox.data().join("{host}"), measure);
        self.begin(&[&plan, "--agents", &HOSTS.to_string()]);
    }

    fn network(&self, at: usize, way: &str) {
        ip(&format!("-n {} link set p{at} {way}", self.hosts.names[0]));
    }

    /// Causes a failure. If the failure is temporary, returns the failure to pass to `undo`, with
    /// the time after which it is due.
    fn fail(&mut self, failure: Failure) -> Option<(Duration, Failure)> {
        match failure {
            Failure::AgentKilled(at) | Failure::AgentStarted(at) => {
                self.excused[at - 1] = true;
                self.agents[at - 1] = None;
                if matches!(failure, Failure::AgentStarted(_)) {
                    self.start_agent(at);
                }
                None
            }
            Failure::AgentStopped(at, time) => {
                let agent = self.agents[at - 1].as_ref()?;
                signal(&agent.0, "-STOP");
                Some((time, failure))
            }
            Failure::NetworkAway(at, time) => {
                self.network(at, "down");
                Some((time, failure))
            }
            Failure::NetworkGone(at) => {
                self.network(at, "down");
                None
            }
            Failure::DiskFull(at) => {
                self.excused[at - 1] = true;
                self.disks[at - 1].fill();
                None
            }
            Failure::BrokerAway(time) => {
                self.broker = None;
                Some((time, failure))
            }
            Failure::BrokerHangs(time) => {
                signal(&self.broker.as_ref()?.0, "-STOP");
                Some((time, failure))
            }
            Failure::CoordinatorAway(time) => {
                self.coordinator.take()?;
                Some((time, failure))
            }
            Failure::CoordinatorStopped(time) => {
                signal(&self.coordinator.as_ref()?.0, "-STOP");
                Some((time, failure))
            }
        }
    }

    /// Reverses a failure. If a network failed permanently, it stays down.
    fn undo(&mut self, failure: Failure, gone: &[usize]) {
        match failure {
            Failure::AgentStopped(at, _) => {
                if let Some(agent) = &self.agents[at - 1] {
                    signal(&agent.0, "-CONT");
                }
            }
            Failure::BrokerHangs(_) => go_on(self.broker.as_mut()),
            Failure::CoordinatorStopped(_) => go_on(self.coordinator.as_mut()),
            Failure::NetworkAway(at, _) if !gone.contains(&at) => self.network(at, "up"),
            Failure::BrokerAway(_) if self.broker.is_none() => self.start_broker(),
            Failure::CoordinatorAway(_) if self.coordinator.is_none() => {
                let kept = self.sandbox.path("state/plimsoll/fleet-runs");
                let run = fs::read_dir(kept).into_iter().flatten().flatten().next();
                // If no run was saved, the coordinator was killed before it sent an order or after
                // it had received the evidence.
                if let Some(run) = run {
                    let path = run.path();
                    let id = path.file_stem().unwrap().to_str().unwrap();
                    self.resumed = true;
                    self.begin(&["--resume", id]);
                }
            }
            _ => {}
        }
    }

    /// Runs a schedule of failures during a run. Returns the exit code of the coordinator that
    /// finished it, if any.
    fn suffer(&mut self, schedule: &[(Duration, Failure)]) -> Option<i32> {
        self.run_plan("3s");
        let began = Instant::now();
        let mut coming: Vec<(Duration, Failure)> = schedule.to_vec();
        let mut undoing: Vec<(Duration, Failure)> = Vec::new();
        let mut gone = Vec::new();
        loop {
            let now = began.elapsed();
            assert!(now < ENDS_WITHIN, "it does not end: {}", self.reported());
            while let Some(at) = coming.iter().position(|(at, _)| *at <= now) {
                let (_, failure) = coming.remove(at);
                if let Failure::NetworkGone(at) = failure {
                    gone.push(at);
                }
                undoing.extend(self.fail(failure).map(|(time, failure)| (now + time, failure)));
            }
            while let Some(at) = undoing.iter().position(|(at, _)| *at <= now) {
                let (_, failure) = undoing.remove(at);
                self.undo(failure, &gone);
            }
            let ended = match &mut self.coordinator {
                Some(process) => process.0.try_wait().unwrap().map(|status| status.code()),
                None if undoing.iter().any(|(_, f)| matches!(f, Failure::CoordinatorAway(_))) => {
                    None
                }
                None => Some(None),
            };
            // No server was available when the run was resumed, so the test resumes it again.
            if ended == Some(Some(5)) && self.resumed && self.fleets().is_empty() {
                let again = Failure::CoordinatorAway(Duration::ZERO);
                self.coordinator = None;
                undoing.push((now + Duration::from_millis(500), again));
                continue;
            }
            if let Some(code) = ended {
                // The run has ended, so later failures cannot affect it.
                undoing.into_iter().for_each(|(_, failure)| self.undo(failure, &gone));
                return code;
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn reported(&self) -> String {
        let mut all = String::new();
        for run in 1..=self.runs {
            for what in ["json", "log"] {
                let path = self.sandbox.path(&format!("run-{run}.{what}"));
                all += &format!("{run}.{what}: {}\n", fs::read_to_string(path).unwrap_or_default());
            }
        }
        for at in 1..=HOSTS {
            all += &format!("node{at}: {}\n", fs::read_to_string(self.log(at)).unwrap_or_default());
        }
        all
    }

    /// Returns the fleet bundles in the coordinator's directory.
    fn fleets(&self) -> Vec<PathBuf> {
        let runs = fs::read_dir(self.sandbox.path("share/plimsoll/runs")).into_iter().flatten();
        let runs = runs.flatten().map(|entry| entry.path());
        runs.filter(|path| path.join("all/fleet.json").is_file()).collect()
    }

    /// Checks that the remaining bundles are complete and consistent. Returns a description of how
    /// the run ended.
    fn check(&self, code: Option<i32>) -> String {
        let fleets = self.fleets();
        assert!(fleets.len() <= 1, "{fleets:?}");
        let Some(fleet) = fleets.first() else {
            let log = fs::read_to_string(self.said("log")).unwrap();
            let named =
                log.contains("node") || log.contains("free agents") || log.contains("nats://");
            match code {
                // The coordinator was killed before it requested anything.
                None => {}
                Some(2 | 5) => assert!(log.contains("error:") && named, "{}", self.reported()),
                code => panic!("exit code {code:?} without evidence: {}", self.reported()),
            }
            return format!("no run (exit code {code:?})");
        };
        let (stated, verdict) =
            (json(&fleet.join("all/fleet.json")), json(&fleet.join("verdict.json")));
        let kind = verdict["verdict"].as_str().unwrap().to_owned();
        let reason = verdict["reason"].as_str().unwrap();
        let hosts = stated["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), HOSTS, "{stated:#}");
        let missing: Vec<&str> = hosts
            .iter()
            .filter(|host| host["end"] != "reported")
            .map(|host| host["name"].as_str().unwrap())
            .collect();
        if missing.is_empty() {
            // All hosts finished. If one of them was stopped before it measured, there is no total.
            let undecided = ["INCONCLUSIVE", "INVALID"].contains(&kind.as_str());
            assert!(!verdict["total"].is_null() || undecided, "{verdict:#}");
        } else {
            assert_eq!(kind, "INVALID", "{missing:?} {verdict:#}");
            assert!(verdict["total"].is_null(), "a sum without {missing:?}: {verdict:#}");
            assert!(missing.iter().any(|host| reason.contains(host)), "{missing:?}: {reason}");
        }
        for host in hosts.iter().filter(|host| host["end"] == "reported") {
            let (name, run) = (host["name"].as_str().unwrap(), host["run"]["run_id"].as_str());
            self.verify(&fleet.join("hosts").join(name).join(run.unwrap()));
        }
        let judged = self.sandbox.run(&["judge", fleet.to_str().unwrap(), "--json"]);
        assert_eq!(judged.json()["verdict"], verdict["verdict"], "{}", judged.stderr);
        if let Some(code) = code.filter(|code| *code != 2) {
            assert_eq!(judged.code, code, "{}", self.reported());
        }
        format!("{kind}: {reason}")
    }

    fn verify(&self, bundle: &Path) {
        let ran = self.sandbox.run(&["verify", bundle.to_str().unwrap(), "--json"]);
        // The run is in the ledger of another host, so it is missing in this host's ledger.
        let says: Value = ran.json();
        let text = || self.sandbox.run(&["judge", bundle.to_str().unwrap()]).stdout;
        assert_eq!(says["runs"][0]["agrees_with_itself"], true, "{says:#}\n{}", text());
    }

    /// Checks that each host has its own bundle.
    fn check_hosts(&self) {
        for at in 1..=HOSTS {
            let (sealed, log) =
                (self.disks[at - 1].sealed(), fs::read_to_string(self.log(at)).unwrap());
            sealed.iter().for_each(|bundle| self.verify(bundle));
            let carried = log.matches("started run ").count()
                - log.matches("the run was not started").count();
            if !self.excused[at - 1] && sealed.len() < carried {
                panic!("node{at} has lost what it measured: {}", self.reported());
            }
        }
    }

    /// Checks that the fleet is complete again and accepts the next plan.
    fn goes_on(&mut self) {
        (1..=HOSTS).for_each(|at| self.network(at, "up"));
        self.disks.iter().for_each(Disk::free);
        if self.broker.is_none() {
            self.start_broker();
        }
        for at in 1..=HOSTS {
            let runs = self.agents[at - 1]
                .as_mut()
                .is_some_and(|agent| agent.0.try_wait().unwrap().is_none());
            if !runs {
                assert!(self.excused[at - 1], "node{at} has ended: {}", self.reported());
                self.start_agent(at);
            }
        }
        for fleet in self.fleets() {
            fs::rename(&fleet, self.sandbox.path("first")).unwrap();
        }
        let began = Instant::now();
        loop {
            self.run_plan("1s");
            let code = self.coordinator.as_mut().unwrap().wait();
            if code != 5 {
                assert!([0, 3].contains(&code), "{}", self.reported());
                break;
            }
            assert!(began.elapsed() < FREE_WITHIN, "no agents are free: {}", self.reported());
        }
        let fleets = self.fleets();
        assert_eq!(fleets.len(), 1, "{}", self.reported());
        adds_up(&fleets[0], HOSTS);
        self.coordinator = None;
    }

    /// Checks that each agent exits after SIGTERM.
    fn ends(&mut self) {
        for agent in self.agents.iter().flatten() {
            signal(&agent.0, "-TERM");
        }
        for agent in self.agents.iter_mut().flatten() {
            assert_eq!(agent.wait(), 0);
        }
        for name in &self.hosts.names[1..] {
            let left = tool("ip", &["netns", "pids", name]);
            assert_eq!(left, "", "processes are left in {name}");
        }
    }
}

fn one(seed: u64) {
    let schedule = schedule(seed);
    let says: Vec<String> =
        schedule.iter().map(|(at, failure)| format!("{} ms {failure}", at.as_millis())).collect();
    println!("seed {seed}: {}", says.join("; "));
    let mut scene = Scene::new();
    let began = Instant::now();
    let code = scene.suffer(&schedule);
    let took = began.elapsed();
    let how = scene.check(code);
    scene.goes_on();
    scene.check_hosts();
    scene.ends();
    println!("seed {seed}: after {:.1} s {how}", took.as_secs_f64());
}

#[test]
fn a_schedule_is_drawn_from_its_seed() {
    assert_eq!(schedule(7), schedule(7));
    let drawn: Vec<Failure> = (0..400).flat_map(schedule).map(|(_, failure)| failure).collect();
    let kinds: std::collections::BTreeSet<String> =
        drawn.iter().map(|f| format!("{f:?}").split('(').next().unwrap().to_owned()).collect();
    assert_eq!(kinds.len(), 10, "{kinds:?}");
}

#[test]
fn no_schedule_of_failures_loses_evidence_or_passes_a_sum_without_a_host() {
    // The bench sets this variable to the first seed and the number of schedules.
    let requested = std::env::var("PLIMSOLL_SCHEDULES").unwrap_or_else(|_| "508 1".to_owned());
    let requested: Vec<u64> =
        requested.split_whitespace().map(|number| number.parse().unwrap()).collect();
    (requested[0]..requested[0] + requested[1]).for_each(one);
}
