//! Servers, agents and hosts for the fleet tests. All of them are ended by process id.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_fleet::local::PrivateServer;
use serde_json::Value;

use crate::support::{OF_THE_HOST, Sandbox, json, wait_until};

/// I/Os per second in each host's plan. Every target sustains this rate.
pub const RATE: f64 = 200.0;
/// Time limit of a command. A command that takes longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn plan(sandbox: &Sandbox, path: &Path, measure: &str) -> String {
    let text = format!(
        "version = 1\nname = \"together\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\nsizes = \"4KiB\"\nreads = 70\narrival = \
         \"constant\"\nrate = {RATE}\n[phases]\nwarm_up = \"500ms\"\nmeasure = \
         \"{measure}\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"500ms\"\n",
        path.display().to_string()
    );
    let file = sandbox.path("fleet.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// A child process that is killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    pub fn wait(&mut self) -> i32 {
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

/// Returns the only fleet bundle in a directory.
pub fn fleet_in(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let fleets: Vec<PathBuf> =
        entries.filter(|path| path.join("all/fleet.json").is_file()).collect();
    assert_eq!(fleets.len(), 1, "{fleets:?}");
    fleets[0].clone()
}

pub fn count_of(class: &Value) -> u64 {
    class["count"].as_u64().unwrap()
}

/// Returns true if a verdict states that other work kept the machine of the test busy.
pub fn was_disturbed(fleet: &Path) -> bool {
    let hosts = fs::read_dir(fleet.join("hosts")).unwrap().flatten();
    let bundles = hosts.flat_map(|host| fs::read_dir(host.path()).unwrap().flatten());
    bundles.map(|bundle| json(&bundle.path().join("verdict.json"))).any(|verdict| {
        let findings = verdict["findings"].as_array().unwrap();
        findings.iter().any(|f| OF_THE_HOST.iter().any(|host| f["rule"] == *host))
    })
}

/// Checks that the totals of all hosts are exactly the sums of the totals in the hosts' own
/// bundles.
pub fn adds_up(fleet: &Path, hosts: usize) -> f64 {
    let stated = json(&fleet.join("all/fleet.json"));
    let verdict = json(&fleet.join("verdict.json"));
    assert_eq!(stated["hosts"].as_array().unwrap().len(), hosts, "{stated:#}");
    let window = &stated["window"];
    let (mut sum, mut latencies) = (0, 0);
    let mut seeds = BTreeSet::new();
    for host in stated["hosts"].as_array().unwrap() {
        assert_eq!(host["end"], "reported", "{host:#}");
        let (name, run) = (host["name"].as_str().unwrap(), &host["run"]);
        let bundle = fleet.join("hosts").join(name).join(run["run_id"].as_str().unwrap());
        let own = json(&bundle.join("run.json"));
        let plan = fs::read_to_string(bundle.join("resolved.toml")).unwrap();
        let seed = plan.lines().find(|line| line.starts_with("seed = ")).unwrap().to_owned();
        assert!(seeds.insert(seed), "each host makes its own random choices");
        for class in own["classes"].as_array().unwrap() {
            sum += count_of(class) - class["drained"].as_u64().unwrap();
            latencies += count_of(class);
        }
        let starts = run["starts"].as_array().unwrap();
        assert!(starts.iter().any(|start| start["kind"] == "warm-up"), "{run:#}");
        let offsets = host["clock"].as_array().unwrap();
        for offset in offsets {
            // All hosts of the test use the same clock, so the measured offset must not exceed its
            // stated error.
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
    let reported = findings.iter().any(|finding| finding["rule"] == "fleet-together");
    let error_ns = window["start_skew_error_ns"].as_u64().unwrap();
    println!("{hosts} hosts: {sum} I/Os, starts {skew_ns} ns apart, known to {error_ns} ns");
    assert!(reported || skew_ns < 5_000_000 + error_ns, "{window:#}");
    verdict["total"]["ops_per_s"].as_f64().unwrap()
}

/// A fleet of processes: a server, a signing key, and agents that trust this key.
pub struct Fleet {
    pub sandbox: Sandbox,
    pub server: PrivateServer,
}

impl Fleet {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        let stop = AtomicBool::new(false);
        let server = PrivateServer::start(&sandbox.path("nats"), &stop).unwrap();
        let key = sandbox.path("key");
        sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
        Self { sandbox, server }
    }

    pub fn agent(&self, name: &str) -> Process {
        self.agent_with(name, &[])
    }

    /// Starts an agent with additional options.
    pub fn agent_with(&self, name: &str, more: &[&str]) -> Process {
        let trust = self.sandbox.path("key.pub");
        let allow = self.sandbox.data();
        let arguments = ["agent", "--server", self.server.url(), "--name", name, "--trust"];
        let mut command = self.sandbox.command(&arguments);
        command.arg(trust).arg("--allow-path").arg(allow).args(more);
        command.env("XDG_DATA_HOME", self.sandbox.path(&format!("share-{name}")));
        command.env("XDG_STATE_HOME", self.sandbox.path(&format!("state-{name}")));
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(self.sandbox.path(&format!("log-{name}"))).unwrap());
        Process::start(command)
    }
}

/// Hosts as network namespaces. They are connected by a bridge in another namespace, cannot be
/// reached from outside, and are removed when this value is dropped.
pub struct Hosts {
    pub names: Vec<String>,
}

/// Address of the switch, where the server and the coordinator run. The address of host `i` ends in
/// `i`.
pub const SWITCH: &str = "10.231.7.254";

pub fn ip(arguments: &str) {
    let ran = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(ran.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

impl Hosts {
    /// Creates the switch, then `count` hosts.
    pub fn new(count: usize) -> Self {
        // Several tests in one process may create their hosts at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (own, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = |at: usize| format!("pf{own}-{number}-{at}");
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

    /// Starts the NATS server at the switch. Returns when host 1 can connect to it.
    pub fn server(&self, sandbox: &Sandbox) -> Process {
        let mut server = self.on(0, "nats-server");
        server.args(["-a", SWITCH, "-p", "4222", "-js", "-sd"]).arg(sandbox.path("nats"));
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Process::start(server);
        let probe = format!(": < /dev/tcp/{SWITCH}/4222");
        wait_until("the server", || {
            self.on(1, "bash").args(["-c", &probe]).output().unwrap().status.success()
        });
        server
    }

    /// Runs Plimsoll on a host, with separate state, data and cache directories.
    pub fn plimsoll(&self, sandbox: &Sandbox, at: usize, own: &str) -> Command {
        let mut command = self.on(at, env!("CARGO_BIN_EXE_plimsoll"));
        command.env("XDG_STATE_HOME", sandbox.path(&format!("state-{own}")));
        command.env("XDG_DATA_HOME", sandbox.path(&format!("share-{own}")));
        command.env("XDG_CACHE_HOME", sandbox.path(&format!("cache-{own}")));
        command.env("PLIMSOLL_CALIBRATE", "never");
        command
    }

    /// Starts agent `nodeN` on host N. It connects to `server` and has the permissions `allowed`.
    pub fn agent(&self, sandbox: &Sandbox, at: usize, server: &str, allowed: &[&str]) -> Process {
        let own = format!("node{at}");
        let mut agent = self.plimsoll(sandbox, at, &own);
        agent.args(["agent", "--server", server, "--name", &own, "--trust"]);
        agent.arg(sandbox.path("key.pub")).args(allowed);
        let log = fs::File::create(sandbox.path(&format!("log-{own}"))).unwrap();
        agent.stdout(Stdio::null()).stderr(log);
        Process::start(agent)
    }

    /// Waits until `count` agents are connected and idle.
    pub fn wait_for_agents(&self, sandbox: &Sandbox, count: usize) {
        let url = format!("nats://{SWITCH}:4222");
        wait_until("the agents", || {
            let mut status = self.plimsoll(sandbox, 0, "here");
            let seen = status.args(["fleet", "status", &url, "--json"]).output().unwrap();
            let seen: Value = serde_json::from_slice(&seen.stdout).unwrap();
            seen.as_array().unwrap().iter().filter(|agent| agent["busy_with"].is_null()).count()
                == count
        });
    }

    /// Limits the traffic of host `at` in both directions to a rate in Mbit/s, with a queue of 60
    /// kB; further packets are dropped. Returns false if this kernel does not support such a queue.
    pub fn limit(&self, at: usize, mbit: u32) -> bool {
        let limit = |on: usize, device: &str| {
            let rule =
                format!("qdisc add dev {device} root tbf rate {mbit}mbit burst 32kb limit 60000");
            let mut tc = self.on(on, "tc");
            tc.args(rule.split_whitespace());
            tc.output().is_ok_and(|ran| ran.status.success())
        };
        limit(at, "eth0") && limit(0, &format!("p{at}"))
    }

    /// Returns a command that runs `program` on host `at`; host 0 is the switch.
    pub fn on(&self, at: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at], program]);
        command
    }
}

/// A proxy that forwards connections to the server and delays traffic in both directions. It
/// listens on the host's loopback address, and connects to the server from the host's own address.
pub struct Delay;

impl Delay {
    /// Starts the proxy on host `at`. Agents there reach the server at [`Delay::URL`].
    pub fn start(hosts: &Hosts, at: usize, one_way: Duration) -> Self {
        let place = fs::File::open(format!("/run/netns/{}", hosts.names[at])).unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        // The sockets of a thread stay in the network namespace in which they were created. The
        // thread ends with the test process.
        std::thread::spawn(move || {
            let network = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(place.as_fd(), Some(network)).unwrap();
            let listener = TcpListener::bind("127.0.0.1:4222").unwrap();
            ready.send(()).unwrap();
            for near in listener.incoming() {
                let near = near.unwrap();
                // If the server is not available, the proxy closes the client's connection.
                let Ok(far) = TcpStream::connect((SWITCH, 4222)) else { continue };
                [&near, &far].into_iter().for_each(|one| one.set_nodelay(true).unwrap());
                for (from, to) in [(&near, &far), (&far, &near)] {
                    later(from.try_clone().unwrap(), to.try_clone().unwrap(), one_way);
                }
            }
        });
        is_ready.recv().unwrap();
        Self
    }

    pub const URL: &'static str = "nats://127.0.0.1:4222";
}

/// Forwards data after a delay.
fn later(mut from: TcpStream, mut to: TcpStream, one_way: Duration) {
    let (pass, passed) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if pass.send((Instant::now() + one_way, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in passed {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
