//! Measures the resources that the agents of a fleet and their NATS server use. Starts the given
//! number of agents in this process, each with a light plan.
//!
//! `cargo run --release -p plimsoll-fleet --example many_agents -- 200` needs `nats-server` on the
//! PATH. The agents, runs and evidence are the same as those of `plimsoll agent`. Unlike a real
//! fleet, all agents share the processors, memory and loopback link of this host, and the targets
//! are tiny.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_evidence::fleet::HostEnd;
use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::{agent, coordinator};
use plimsoll_plan::Plan;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;
use serde_json::Value;

/// Time over which idle agents are measured.
const IDLE: Duration = Duration::from_secs(20);

struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Counters of the server: messages and bytes received and sent, and memory.
#[derive(Clone, Copy, Debug)]
struct ServerCounters {
    received: f64,
    sent: f64,
    received_bytes: f64,
    sent_bytes: f64,
    memory_bytes: f64,
}

fn read_counters(port: u16) -> ServerCounters {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let varz: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let number = |name: &str| varz[name].as_f64().unwrap();
    ServerCounters {
        received: number("in_msgs"),
        sent: number("out_msgs"),
        received_bytes: number("in_bytes"),
        sent_bytes: number("out_bytes"),
        memory_bytes: number("mem"),
    }
}

/// Resident memory of this process.
fn own_bytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1024.0
}

fn places(root: &Path, signer: Option<Signer>) -> Places {
    Places {
        state: root.join("state"),
        runs: root.join("runs"),
        cache: root.join("cache"),
        signer: signer.map(Arc::new),
    }
}

fn print_per_agent(
    count: u32,
    what: &str,
    before: ServerCounters,
    after: ServerCounters,
    seconds: f64,
) {
    let each = |a: f64, b: f64| (b - a) / f64::from(count);
    println!(
        "{what}: {:.1} messages and {:.1} kB to the server, {:.1} and {:.1} kB from it for each agent in {seconds:.1} s",
        each(before.received, after.received),
        each(before.received_bytes, after.received_bytes) / 1e3,
        each(before.sent, after.sent),
        each(before.sent_bytes, after.sent_bytes) / 1e3,
    );
}

fn main() {
    let count: u32 = std::env::args().nth(1).map_or(200, |text| text.parse().expect("a number"));
    let root: PathBuf = std::env::temp_dir().join(format!("plimsoll-many-{}", std::process::id()));
    fs::create_dir_all(root.join("data")).unwrap();
    let (port, monitor) = (free_port(), free_port());
    let server = Command::new("nats-server")
        .args([
            "-a",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-m",
            &monitor.to_string(),
            "-js",
            "-sd",
        ])
        .arg(root.join("nats"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server on the PATH");
    let _server = ServerProcess(server);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    make_keys(&root.join("key"), None).unwrap();
    let signer = Signer::read(&root.join("key"), || None).unwrap();
    let trust = vec![signer.public().to_owned()];
    let reached = Server { url: format!("nats://127.0.0.1:{port}"), ..Server::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let empty = read_counters(monitor);
    let own_empty = own_bytes();
    let agents: Vec<_> = (1..=count)
        .map(|number| {
            let own = agent::Options {
                server: reached.clone(),
                name: format!("node{number}"),
                labels: Vec::new(),
                trust: trust.clone(),
                allow: Allow::new(&[root.join("data")], &[], &[]).unwrap(),
                places: places(&root.join(format!("node{number}")), None),
                bundles: None,
                coordinator_timeout: agent::COORDINATOR_TIMEOUT,
            };
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                agent::run(&own, &stop, &mut |_| ()).map_err(|error| error.to_string())
            })
        })
        .collect();
    let began = Instant::now();
    while coordinator::status(&reached).unwrap().len() < count as usize {
        assert!(began.elapsed() < Duration::from_secs(120), "not all agents came");
    }
    println!("{count} agents are there after {:.1} s", began.elapsed().as_secs_f64());
    let (before, idle) = (read_counters(monitor), Instant::now());
    std::thread::sleep(IDLE);
    let after = read_counters(monitor);
    print_per_agent(count, "idle", before, after, idle.elapsed().as_secs_f64());
    println!(
        "idle: {:.0} kB of this process and {:.0} kB of the server for each agent",
        (own_bytes() - own_empty) / f64::from(count) / 1e3,
        (after.memory_bytes - empty.memory_bytes) / f64::from(count) / 1e3
    );
    let text = format!(
        "version = 1\nname = \"many\"\ndemonstration = true\n[target]\npath = {:?}\n\
         [workload.matrix]\nfile_size = \"64KiB\"\nsizes = \"4KiB\"\nreads = 100\narrival = \"constant\"\n\
         rate = 10\n[phases]\nwarm_up = \"1s\"\nmeasure = \"10s\"\n[evidence]\n\
         min_measure = \"1s\"\ninterval = \"1s\"\n",
        root.join("data/{host}").display().to_string()
    );
    let plan = Plan::parse(&text, "many.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let options = coordinator::Options {
        server: reached,
        agents: Some(count),
        names: Vec::new(),
        places: places(&root, Some(signer)),
        bundles: root.join("runs"),
    };
    let (before, began) = (read_counters(monitor), Instant::now());
    let mut most_bytes = 0.0_f64;
    let left = coordinator::run(
        &coordinator::RunRequest::whole_plan(&plan),
        &options,
        &AtomicBool::new(false),
        &mut |event| {
            most_bytes = most_bytes.max(own_bytes());
            if let coordinator::Event::Warning(says) = event {
                println!("{says}");
            }
        },
    );
    let took = began.elapsed().as_secs_f64();
    let after = read_counters(monitor);
    print_per_agent(count, "one run", before, after, took);
    match left {
        Ok(left) => {
            let all = left.fleet.hosts.iter();
            let reported = all.filter(|host| host.end == HostEnd::Reported).count();
            println!(
                "one run: {} of {count} hosts reported, {}; {:.0} kB of this process for each agent at most; {}: {}",
                reported,
                left.fleet.window.map_or("no common time".to_owned(), |window| format!(
                    "starts {:.1} ms apart, known to {:.1} ms",
                    window.start_skew_ns as f64 / 1e6,
                    window.start_skew_error_ns as f64 / 1e6
                )),
                (most_bytes - own_empty) / f64::from(count) / 1e3,
                left.verdict.verdict.label(),
                left.verdict.reason
            );
        }
        Err(error) => println!("one run: {error}"),
    }
    stop.store(true, Ordering::Relaxed);
    for agent in agents {
        if let Err(error) = agent.join().unwrap() {
            println!("an agent ended: {error}");
        }
    }
    let _ = fs::remove_dir_all(&root);
}
