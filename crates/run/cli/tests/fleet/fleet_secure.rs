//! A fleet that `plimsoll fleet init` set up: mutual TLS, a key for each user, and rejected
//! connections.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::fleets::{Process, adds_up, fleet_in, plan};
use crate::support::port::free_port;
use crate::support::{CommandOutput, Sandbox, wait_until};

/// A fleet with a real server, in a sandbox.
pub struct Secure {
    pub sandbox: Sandbox,
    server: Option<Process>,
    port: u16,
    reloads: Cell<usize>,
}

impl Secure {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        let port = free_port();
        let mut secure = Self { sandbox, server: None, port, reloads: Cell::new(0) };
        secure.init("fleet").expect(0).says("nats-server -c nats.conf");
        let conf = secure.at("fleet/server/nats.conf");
        let text = fs::read_to_string(&conf).unwrap().replace("0.0.0.0", "127.0.0.1");
        fs::write(conf, format!("{text}log_file: \"server.log\"\ndebug: true\n")).unwrap();
        let mut command = Command::new("nats-server");
        command.args(["-c", "nats.conf"]).current_dir(secure.at("fleet/server"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        secure.server = Some(Process::start(command));
        wait_until("the server", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        secure
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.sandbox.path(path)
    }

    fn init(&self, directory: &str) -> CommandOutput {
        let (directory, port) = (self.at(directory), self.port.to_string());
        let directory = directory.display().to_string();
        let of = ["--server-name", "127.0.0.1", "--port", &port, "--agents", "node1,node2"];
        self.sandbox.run(&[&["fleet", "init", &directory][..], &of].concat())
    }

    pub fn fleet(&self) -> String {
        self.at("fleet/coordinator/fleet.toml").display().to_string()
    }

    fn agent(&self, config: &str) -> Command {
        let config = self.at(config).display().to_string();
        let mut command = self.sandbox.command(&["agent", &config, "--allow-path"]);
        command.arg(self.sandbox.data());
        command
    }

    pub fn start(&self, name: &str) -> Process {
        let mut command = self.agent(&format!("fleet/agents/{name}.toml"));
        for variable in ["DATA", "STATE", "CACHE"] {
            let home = self.at(&format!("home-{name}/{variable}"));
            command.env(format!("XDG_{variable}_HOME"), home);
        }
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(self.at(&format!("log-{name}"))).unwrap());
        Process::start(command)
    }

    /// Checks that the server rejects an agent with this configuration.
    fn refused(&self, config: &str, says: &str) {
        let output = self.agent(config).output().unwrap();
        CommandOutput::from(output).expect(5).says(says);
    }

    /// Reloads the configuration of the running server.
    fn reload(&self) {
        let server = self.server.as_ref().unwrap().0.id();
        let mut command = Command::new("nats-server");
        let done = command.args(["--signal", &format!("reload={server}")]).status().unwrap();
        assert!(done.success());
        let before = self.reloads.get();
        self.reloads.set(before + 1);
        let count = || self.log().matches("Reloaded server configuration").count();
        wait_until("the server's users", || count() > before);
    }

    fn log(&self) -> String {
        fs::read_to_string(self.at("fleet/server/server.log")).unwrap()
    }
}

/// Checks that the overview page lists the hosts.
fn are_on_the_page(sandbox: &Sandbox, fleet: &str) {
    let mut command = sandbox.command(&["serve", "--listen", "0", "--fleet", fleet]);
    let mut page = Process::start({
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    });
    let mut line = String::new();
    BufReader::new(page.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let at =
        line.trim().trim_start_matches("the page is at http://").trim_end_matches('/').to_owned();
    wait_until("both on the page", || {
        let mut stream = TcpStream::connect(&at).unwrap();
        let ask = format!("GET / HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        ["node1", "node2", "free", "<h2>Fleet</h2>"].iter().all(|word| text.contains(word))
    });
}

#[test]
fn two_hosts_of_a_fleet_that_was_set_up_measure_together_and_are_drained_and_asked() {
    let secure = Secure::new();
    let (sandbox, fleet) = (&secure.sandbox, secure.fleet());
    // If agents start before the first coordinator, they wait for it, and report this.
    let _agents = [secure.start("node1"), secure.start("node2")];
    wait_until("their log", || {
        ["log-node1", "log-node2"].iter().all(|log| {
            let said = fs::read_to_string(secure.at(log)).unwrap();
            said.contains("waits until a coordinator has created the streams on tls://127.0.0.1")
        })
    });
    // Wait for longer than the coordinator's own timeout.
    std::thread::sleep(std::time::Duration::from_secs(3));
    sandbox.run(&["fleet", "status", &fleet]).expect(0);
    wait_until("both", || {
        let seen = sandbox.run(&["fleet", "status", &fleet, "--json"]).expect(0).json();
        let known = |agent: &serde_json::Value| agent["clock"]["error_ns"].as_u64().is_some();
        seen.as_array().unwrap().iter().filter(|agent| known(agent)).count() == 2
    });
    sandbox.run(&["fleet", "status", &fleet]).expect(0).says("free");
    are_on_the_page(sandbox, &fleet);

    // Agents accept the plan if its targets are allowed, and reject it otherwise.
    let inside = plan(sandbox, &sandbox.data().join("{host}"), "1s");
    let would = sandbox.run(&["fleet", "check", &fleet, &inside, "--json"]).expect(0).json();
    assert!(would.as_array().unwrap().iter().all(|agent| agent["takes"] == true), "{would:#}");
    assert!(!sandbox.data().join("node1").exists(), "asking makes nothing");
    sandbox
        .run(&["fleet", "check", &fleet, &inside, "--set", "target.path=/etc"])
        .expect(1)
        .says("not in any --allow-path");

    let ran = sandbox.run(&["run", &inside, "--fleet", &fleet, "--agents", "2", "--json"]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    adds_up(&fleet_in(&sandbox.path("share/plimsoll/runs")), 2);

    sandbox.run(&["fleet", "drain", &fleet, "node2"]).expect(0).says("draining");
    sandbox.run(&["fleet", "status", &fleet]).expect(0).says("drained");
    sandbox.run(&["fleet", "check", &fleet, &inside]).expect(1).says("drained");
    // One agent is drained, so the run uses the first of the other agents.
    let alone = sandbox.run(&["run", &inside, "--fleet", &fleet, "--json"]);
    let hosts = alone.json();
    assert_eq!(hosts["hosts"].as_array().unwrap().len(), 1, "{hosts:#}");
    sandbox.run(&["fleet", "drain", &fleet, "node2", "--undo"]).expect(0);
    sandbox.run(&["fleet", "check", &fleet, &inside]).expect(0);
    sandbox.run(&["fleet", "drain", &fleet, "no.name"]).expect(2);
    sandbox
        .run(&["fleet", "drain", &fleet, "nobody"])
        .expect(2)
        .says("no agent named nobody is connected");
    sandbox.run(&["fleet", "drain", &fleet, "--all"]).expect(0).says("node1, node2");
    sandbox
        .run(&["run", &inside, "--fleet", &fleet])
        .expect(5)
        .says("drained (`plimsoll fleet drain`)");
}

/// Returns the fleet runs of this sandbox in order.
pub fn runs(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(sandbox.path("share/plimsoll/runs")).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|path| path.join("all/fleet.json").is_file());
    runs.sort();
    runs
}

#[test]
fn a_missing_host_of_the_fleet_is_named_and_left_out_only_on_request() {
    let secure = Secure::new();
    let (sandbox, fleet) = (&secure.sandbox, secure.fleet());
    sandbox.run(&["fleet", "status", &fleet]).expect(0);
    let _agent = secure.start("node1");
    wait_until("the agent", || {
        let seen = sandbox.run(&["fleet", "status", &fleet, "--json"]).expect(0).json();
        seen.as_array().unwrap().len() == 1
    });
    let inside = plan(sandbox, &sandbox.data().join("{host}"), "1s");
    let run = |more: &[&str]| {
        sandbox.run(&[&["run", &inside, "--fleet", &fleet, "--json"][..], more].concat())
    };
    let missing = run(&[]).expect(5);
    missing.says("hosts of the fleet are not connected: node2");
    missing.says("or run without these hosts: --without node2");
    assert!(runs(sandbox).is_empty() && sandbox.left_in_data().is_empty(), "nothing was begun");
    run(&["--without", "node3"]).expect(2).says("--without node3: the fleet has no such host");
    let ran = run(&["--without", "node2"]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    adds_up(&runs(sandbox)[0], 1);
}

#[test]
fn a_host_joins_a_fleet_whose_server_goes_on_and_leaves_it() {
    let secure = Secure::new();
    let (sandbox, fleet) = (&secure.sandbox, secure.fleet());
    let directory = secure.at("fleet").display().to_string();
    let are_there = |count: usize| {
        wait_until("the agents", || {
            let seen = sandbox.run(&["fleet", "status", &fleet, "--json"]).expect(0).json();
            seen.as_array().unwrap().len() == count
        });
    };
    sandbox.run(&["fleet", "status", &fleet]).expect(0);
    let mut agents = vec![secure.start("node1"), secure.start("node2")];
    are_there(2);
    let connections = || secure.log().matches("Client connection closed").count();

    // The third agent connects while two agents measure. The two agents stay connected and report
    // their results.
    let inside = plan(sandbox, &sandbox.data().join("{host}"), "3s");
    let mut command = sandbox.command(&["run", &inside, "--fleet", &fleet, "--json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut under_way = Process::start(command);
    wait_until("the load", || sandbox.data().join("node2").exists());
    let closed = connections();
    let said = sandbox.run(&["fleet", "add", &directory, "node3"]).expect(0);
    said.says("added: node3");
    said.says("users.conf to this server, and run: nats-server --signal reload=PID");
    secure.reload();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(connections(), closed, "a connection was closed\n{}", secure.log());
    assert!([0, 3].contains(&under_way.wait()));
    adds_up(&runs(sandbox)[0], 2);

    agents.push(secure.start("node3"));
    are_there(3);
    let inside = plan(sandbox, &sandbox.data().join("{host}"), "1s");
    let ran = sandbox.run(&["run", &inside, "--fleet", &fleet, "--agents", "3", "--json"]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    adds_up(&runs(sandbox)[1], 3);

    sandbox.run(&["fleet", "add", &directory, "node3"]).expect(2).says("already in the fleet");
    let gone = sandbox.run(&["fleet", "remove", &directory, "node1", "--json"]).expect(0).json();
    assert_eq!(gone["removed"], serde_json::json!(["node1"]));
    secure.reload();
    wait_until("its end", || secure.log().contains("authentication error"));
    secure.refused("fleet/agents/node1.toml", "cannot connect to tls://127.0.0.1");
    // The agent's published description expires some seconds later.
    let left = ["--set", "fleet.names=[\"node2\", \"node3\"]"];
    let ran = sandbox.run(&[&["run", &inside, "--fleet", &fleet, "--json"][..], &left].concat());
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    adds_up(&runs(sandbox)[2], 2);
}

#[test]
fn who_is_not_of_the_fleet_is_refused_by_name_and_logged() {
    let secure = Secure::new();
    secure.init("foreign").expect(0);
    secure.init("fleet").expect(2).says("is not empty");
    let read = |file: &str| -> toml::Table {
        fs::read_to_string(secure.at(file)).unwrap().parse().unwrap()
    };
    // Returns the file of a host after some of its fields were removed or replaced by those of
    // another fleet.
    let with = |name: &str, fields: &[&str], from: &toml::Table| {
        let mut table = read("fleet/agents/node1.toml");
        for field in fields {
            assert!(table.remove(*field).is_some(), "{field}");
            from.get(*field).map(|value| table.insert((*field).to_owned(), value.clone()));
        }
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(secure.at(name));
        file.unwrap().write_all(table.to_string().as_bytes()).unwrap();
        name.to_owned()
    };
    let foreign = read("foreign/agents/node1.toml");
    // This certificate authority did not sign the server's certificate.
    secure.refused(&with("ca.toml", &["tls_ca"], &foreign), "cannot connect to tls://127.0.0.1");
    // The server does not know this key.
    secure.refused(&with("nkey.toml", &["nkey"], &foreign), "cannot connect to tls://127.0.0.1");
    wait_until("the server's log", || secure.log().contains("authentication error"));
    // The agent uses the file of another fleet.
    secure.refused("foreign/agents/node1.toml", "cannot connect to tls://127.0.0.1");
    // The agent has no certificate.
    let bare = with("bare.toml", &["tls_cert", "tls_key"], &toml::Table::new());
    secure.refused(&bare, "cannot connect to tls://127.0.0.1");
    wait_until("the server's log", || secure.log().contains("TLS handshake error"));
    // The agent does not use TLS.
    let plain = format!("nats://127.0.0.1:{}", secure.port);
    secure.sandbox.run(&["fleet", "status", &plain]).expect(5).says("cannot connect");
    // The file contains an unknown field.
    fs::write(secure.at("odd.toml"), "server = \"tls://a\"\npassword = \"x\"\n").unwrap();
    CommandOutput::from(secure.agent("odd.toml").output().unwrap()).expect(2).says("password");
}

#[test]
fn command_lines_of_contrib_are_the_programs_own() {
    let sandbox = Sandbox::new();
    let contrib = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/fleet");
    let unit = fs::read_to_string(contrib.join("plimsoll-agent.service")).unwrap();
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/plimsoll "));
    let line = line.unwrap().to_owned();
    let manifest = fs::read_to_string(contrib.join("kubernetes.yaml")).unwrap();
    let list =
        manifest.lines().find_map(|line| line.trim().strip_prefix("command: [\"plimsoll\", "));
    let list =
        list.unwrap().trim_end_matches(']').replace([',', '"'], "").replace("/srv/test", "/");
    for line in [line, list] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        // The path is used as written in the file. It refers to a file that does not exist.
        sandbox.run(&arguments).expect(2).says("create it with `plimsoll fleet init`");
    }
    // The systemd unit that is generated from a host's file lists the directories in this file.
    let fleet = sandbox.path("fleet").display().to_string();
    let of = ["--server-name", "a", "--agents", "node1", "--allow-path", "/mnt/a b"];
    sandbox.run(&[&["fleet", "init", &fleet][..], &of].concat()).expect(0);
    let file = format!("{fleet}/agents/node1.toml");
    let unit = sandbox.run(&["agent", &file, "--print-unit"]).expect(0);
    unit.says("ReadWritePaths=\"-/mnt/a b\"\n");
    unit.says(&format!("agent \"{file}\"\n"));
}
