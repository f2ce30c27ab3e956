//! The server fails at each step of a run, before it handles the coordinator's first message of
//! that step. No agent must stay busy, and a run whose plan was sent must lose no evidence.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::fleet_failures::{Server, agent, make_key, server};
use crate::fleets::{Process, adds_up, fleet_in, plan};
use crate::support::{Sandbox, signal, wait_until};

/// Time for which the server hangs. It is longer than the timeout of any single request of a
/// coordinator.
const HANGS_FOR: Duration = Duration::from_secs(25);
/// Time for which a killed server is unavailable.
const AWAY_FOR: Duration = Duration::from_secs(2);
/// Time limit for an agent to accept the next plan.
const FREE_WITHIN: Duration = Duration::from_secs(60);

/// Steps of a run on one agent. Each has a text that occurs in the coordinator's messages, the
/// number of earlier messages with this text, and whether the plan has already been sent.
const STEPS: [(&str, u32, bool); 10] = [
    ("STREAM.INFO.plimsoll ", 0, false),
    ("CONSUMER.CREATE.KV_plimsoll-agents", 0, false),
    ("KV_plimsoll-drained", 0, false),
    ("plimsoll.clock.", 0, false),
    ("OBJ_plimsoll-evidence", 0, false),
    ("PUB plimsoll.order.", 0, true),
    ("SUB plimsoll.live.", 0, true),
    ("PUB plimsoll.go.", 0, true),
    ("plimsoll.clock.", 16, true),
    ("CONSUMER.CREATE.OBJ_plimsoll-evidence", 0, true),
];

/// Forwards connections to the server, and reports when a message of the client contains a text.
struct Watcher {
    port: u16,
    found: Arc<AtomicBool>,
}

impl Watcher {
    /// Watches for message number `before`, counted from 0. This message and later messages are
    /// delayed until `is_failed` is set.
    fn start(
        server: Arc<AtomicU16>,
        text: &'static str,
        before: u32,
        is_failed: Arc<AtomicBool>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (found, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let has_found = Arc::clone(&found);
        // The threads end with their connections, or with the test process.
        spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let to = ("127.0.0.1", server.load(Ordering::Relaxed));
                // If the server is not available, the proxy closes the client's connection.
                let Ok(far) = TcpStream::connect(to) else { continue };
                let (back, front) = (far.try_clone().unwrap(), client.try_clone().unwrap());
                spawn(move || forward(back, front, |_| {}));
                let (found, count) = (Arc::clone(&found), Arc::clone(&count));
                let is_failed = Arc::clone(&is_failed);
                let mut tail = Vec::new();
                spawn(move || {
                    forward(client, far, move |bytes| {
                        tail.extend_from_slice(bytes);
                        let seen = tail.windows(text.len()).filter(|part| *part == text.as_bytes());
                        let seen = u32::try_from(seen.count()).unwrap();
                        if count.fetch_add(seen, Ordering::Relaxed) + seen > before {
                            found.store(true, Ordering::Relaxed);
                            wait_until("the failure", || is_failed.load(Ordering::Relaxed));
                        }
                        // A text may be split between two reads, but must not be counted twice.
                        tail.drain(..tail.len().saturating_sub(text.len() - 1));
                    });
                });
            }
        });
        Self { port, found: has_found }
    }
}

/// Forwards data after `look` has inspected it.
fn forward(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&[u8])) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        look(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other direction is closed too.
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Runs a plan while the server fails at a step. Returns an error message if this run or the next
/// one does not end as required.
fn fail_at(
    (text, before, is_sent): (&'static str, u32, bool),
    is_killed: bool,
) -> Result<(), String> {
    let sandbox = Sandbox::new();
    let key = make_key(&sandbox);
    let mut broker = Server::start(&sandbox);
    let _agent = agent(&sandbox, &broker.url(), "one");
    wait_until("the agent", || {
        let seen = sandbox.run(&["fleet", "status", &broker.url(), "--json"]).json();
        seen.as_array().unwrap().len() == 1
    });
    let is_failed = Arc::new(AtomicBool::new(false));
    let port = Arc::new(AtomicU16::new(broker.port));
    let watcher = Watcher::start(port, text, before, Arc::clone(&is_failed));
    let plan = plan(&sandbox, &sandbox.data().join("{host}"), "1s");
    let run = |url: &str, name: &str| {
        let arguments = ["run", &plan, "--fleet", url, "--agents", "1", "--sign", &key, "--json"];
        let mut command = sandbox.command(&arguments);
        command.stdout(fs::File::create(sandbox.path(&format!("{name}.json"))).unwrap());
        command.stderr(fs::File::create(sandbox.path(&format!("{name}.log"))).unwrap());
        Process::start(command)
    };
    let url = format!("nats://127.0.0.1:{}", watcher.port);
    let mut first = run(&url, "first");
    wait_until("the step", || watcher.found.load(Ordering::Relaxed));
    if is_killed {
        broker.process.0.kill().unwrap();
        broker.process.0.wait().unwrap();
    } else {
        signal(&broker.process.0, "-STOP");
    }
    is_failed.store(true, Ordering::Relaxed);
    if is_killed {
        sleep(AWAY_FOR);
        broker.process = server(&sandbox, broker.port);
    } else {
        sleep(HANGS_FOR);
        signal(&broker.process.0, "-CONT");
    }
    let code = first.wait();
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap();
    let all =
        || format!("{}\n{}\nagent: {}", read("first.log"), read("first.json"), read("log-one"));
    let fleets = sandbox.path("share/plimsoll/runs");
    if is_sent || code != 5 {
        if ![0, 3].contains(&code) {
            return Err(format!("exit code {code}: {}", all()));
        }
        adds_up(&fleet_in(&fleets), 1);
        fs::rename(fleet_in(&fleets), sandbox.path("first")).unwrap();
    } else if ![&url, "clock of agent one"].iter().any(|named| read("first.log").contains(named)) {
        return Err(format!("the error names neither the server nor the agent: {}", all()));
    }
    let kept = fs::read_dir(sandbox.path("state/plimsoll/fleet-runs"));
    if kept.into_iter().flatten().count() > 0 {
        return Err(format!("a record of the run is left: {}", all()));
    }
    let began = Instant::now();
    loop {
        let code = run(&broker.url(), "second").wait();
        if [0, 3].contains(&code) {
            adds_up(&fleet_in(&fleets), 1);
            return Ok(());
        }
        if began.elapsed() > FREE_WITHIN {
            return Err(format!("the agent is not free: {}\n{}", read("second.log"), all()));
        }
    }
}

fn fail_at_each_step(is_killed: bool) {
    let scenes = STEPS.map(|step| (step, spawn(move || fail_at(step, is_killed))));
    let failed: Vec<String> = scenes
        .into_iter()
        .filter_map(|(step, scene)| match scene.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{step:?}: {error}")),
            Err(_) => Some(format!("{step:?}: see the panic above")),
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_server_that_hangs_at_any_step_leaves_no_agent_busy_and_costs_no_evidence() {
    fail_at_each_step(false);
}

#[test]
fn a_server_that_is_killed_at_any_step_leaves_no_agent_busy_and_costs_no_evidence() {
    fail_at_each_step(true);
}
