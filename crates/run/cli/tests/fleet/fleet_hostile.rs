//! A hostile agent: its messages must appear on the coordinator's terminal as short single lines.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::fleets::{Process, plan};
use crate::support::port::free_port;
use crate::support::{CommandOutput, Sandbox, wait_until};

/// A text that clears the screen, and shows a verdict on a separate line.
const FORGED: &str = "\u{1b}[2J\u{1b}[1;32m\nPASS  forged\r\u{9b}31m";

/// Starts a server that accepts messages of 4 MB, like a server that `plimsoll fleet init`
/// configured.
fn server(sandbox: &Sandbox) -> (Process, u16) {
    let port = free_port();
    let conf = sandbox.path("nats.conf");
    let store = sandbox.path("jetstream").display().to_string();
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\nmax_payload: 4MB\njetstream {{ store_dir: {store:?} }}\n"
    );
    fs::write(&conf, text).unwrap();
    let mut command = Command::new("nats-server");
    command.arg("-c").arg(conf).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Process::start(command);
    wait_until("the server", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, port)
}

/// A client that may send any message.
struct Attacker(TcpStream);

impl Attacker {
    fn connect(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"CONNECT {\"verbose\":false}\r\n").unwrap();
        Self(stream)
    }

    fn publish(&mut self, subject: &str, message: &Value) {
        let text = message.to_string();
        write!(self.0, "PUB {subject} {}\r\n{text}\r\nPING\r\n", text.len()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"PONG\r\n") {
            let mut byte = [0; 1];
            assert_eq!(self.0.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&answer));
            answer.extend(byte);
        }
    }
}

/// Checks that a text has no control characters, no forged verdict, and only short lines.
fn is_harmless(text: &str) {
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(is_control), "{:?}", text.find(is_control).map(|at| &text[at..][..20]));
    assert!(
        !text.lines().any(|line| line.trim_start().starts_with("PASS  forged")),
        "{text:.3000}"
    );
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(longest < 1_200, "a line of {longest} characters");
}

#[test]
fn texts_of_a_hostile_agent_are_shown_as_short_single_lines() {
    let sandbox = Sandbox::new();
    let (_server, port) = server(&sandbox);
    let url = format!("nats://127.0.0.1:{port}");
    let key = sandbox.path("key").display().to_string();
    sandbox.run(&["ledger", "key", &key]).expect(0);
    let mut agent = sandbox.command(&["agent", "--server", &url, "--name", "node1", "--trust"]);
    agent.arg(format!("{key}.pub")).arg("--allow-path").arg(sandbox.data());
    for variable in ["DATA", "STATE", "CACHE"] {
        agent.env(format!("XDG_{variable}_HOME"), sandbox.path(&format!("node1/{variable}")));
    }
    agent.stdout(Stdio::null()).stderr(Stdio::null());
    let _agent = Process::start(agent);
    let status = || sandbox.run(&["fleet", "status", &url, "--json"]).expect(0).json();
    wait_until("the agent", || status().as_array().unwrap().len() == 1);
    let mut attacker = Attacker::connect(port);

    // The first run receives warnings of 3 MB and continues. The next run receives a rejection.
    let inside = plan(&sandbox, &sandbox.data(), "3s");
    let long = format!("{FORGED}{}", "x".repeat(3_000_000));
    let mut during = |message: Value| {
        let mut command = sandbox.command(&["run", &inside, "--fleet", &url, "--sign", &key]);
        let log = sandbox.path("log-run");
        command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap());
        let mut run = command.spawn().unwrap();
        let said = || fs::read_to_string(&log).unwrap();
        wait_until("its start", || said().contains(" on 1 agents: node1"));
        let name = said().split(" on 1 agents").next().unwrap().lines().last().unwrap().to_owned();
        let run_id = name.split_whitespace().last().unwrap();
        for _ in 0..3 {
            attacker.publish(&format!("plimsoll.told.{run_id}.node1"), &message);
        }
        let mut stdout = String::new();
        run.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = run.wait().unwrap().code();
        is_harmless(&said());
        is_harmless(&stdout);
        (code, said())
    };
    let (code, said) = during(json!({"told": "warning", "says": long}));
    assert!([Some(0), Some(3)].contains(&code), "{code:?}\n{said:.3000}");
    assert!(said.contains("PASS  forged") && said.contains("xxx"), "it is shown: {said:.3000}");
    let (code, said) = during(json!({"told": "refused", "reason": long}));
    assert_eq!(code, Some(2), "{said:.3000}");
    assert!(said.contains("agent node1 refused the plan") && said.contains("xxx"), "{said:.3000}");

    // The published description (card) of an agent that does not exist.
    let card = json!({
        "name": "node9", "instance": "1", "host": format!("{FORGED}h"), "address": FORGED,
        "boot_id": "b", "version": FORGED, "build": "b", "cpus": 2, "kernel": FORGED,
        "allows": [format!("path {FORGED}{}", "y".repeat(20_000))], "labels": [FORGED], "trusts": [],
        "busy_with": FORGED
    });
    attacker.publish("$KV.plimsoll-agents.node9", &card);
    let mut shown = sandbox.command(&["fleet", "status", &url]);
    let shown = CommandOutput::from(shown.env("COLUMNS", "200").output().unwrap()).expect(0);
    shown.says("node9");
    is_harmless(&shown.stdout);
}
