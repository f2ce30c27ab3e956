//! A fleet run that is started from the web page, on hosts that were selected there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::fleet_secure::{Secure, runs};
use crate::fleets::{Process, adds_up};
use crate::support::server::{Answer, Server, quoted};
use crate::support::{json, wait_until};

/// Tokens of the roles `run` and `view`.
const RUNS: &str = "0123456789abcdef-runs";
const LOOKS: &str = "0123456789abcdef-looks";

/// A web page for a fleet of two hosts, with its log.
struct Page {
    secure: Secure,
    server: Server,
    _agents: [Process; 2],
}

impl Page {
    fn start(options: &[&str]) -> Self {
        let secure = Secure::new();
        let (sandbox, fleet) = (&secure.sandbox, secure.fleet());
        sandbox.run(&["fleet", "status", &fleet]).expect(0);
        let agents = [secure.start("node1"), secure.start("node2")];
        wait_until("the agents", || {
            let seen = sandbox.run(&["fleet", "status", &fleet, "--json"]).expect(0).json();
            seen.as_array().unwrap().len() == 2
        });
        let tokens = secure.at("tokens");
        fs::write(&tokens, format!("run {RUNS} ann\nview {LOOKS} bob\n")).unwrap();
        fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
        let all = ["serve", "--listen", "0", "--json", "--fleet", &fleet, "--token-file"];
        let mut command = sandbox.command(&all);
        command.arg(tokens).args(options).stdout(Stdio::piped());
        command.stderr(fs::File::create(secure.at("log-page")).unwrap());
        let server = Server::of(command.spawn().unwrap());
        let page = Self { secure, server, _agents: agents };
        wait_until("the hosts", || page.get("/").text().contains("node2"));
        page
    }

    fn get(&self, path: &str) -> Answer {
        self.server.ask("GET", path, &bearer(RUNS), "")
    }

    fn send(&self, token: &str, path: &str, plan: &str) -> Answer {
        self.server.ask(
            "POST",
            path,
            &format!("{}Content-Type: text/plain\r\n", bearer(token)),
            plan,
        )
    }

    /// Waits for the end of the run, and returns its last live state.
    fn ended(&self) -> Value {
        let live = || self.get("/api/live").expect(200).json();
        wait_until("the end", || live()["is_under_way"] == false);
        live()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.secure.at("log-page")).unwrap()
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn plan(path: &Path, more: &str) -> String {
    format!(
        "version = 1\nname = \"picked\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\narrival = \"constant\"\nrate = \
         200\n[phases]\nwarm_up = \"500ms\"\nmeasure = \"3s\"\n[evidence]\nmin_measure = \
         \"1s\"\ninterval = \"500ms\"\n{more}",
        path.display().to_string()
    )
}

#[test]
fn a_run_is_started_on_the_hosts_that_are_picked_on_the_page() {
    let page = Page::start(&["--allow-fleet"]);
    let (sandbox, data) = (&page.secure.sandbox, page.secure.sandbox.data());
    // The form shows the hosts with their allow-lists.
    let form = page.get("/start?kind=matrix").expect(200).text();
    for host in ["node1", "node2"] {
        assert!(form.contains(&format!("name=\"host\" value=\"{host}\"")), "{form:.6000}");
    }
    assert!(form.contains(&format!("allows path {}", data.display())), "{form:.6000}");
    // Both hosts are selected in the form.
    let inside = data.join("{host}").display().to_string();
    let fields = [
        ("kind", "text"),
        ("plan", &plan(Path::new(&inside), "")),
        ("host", "node1"),
        ("host", "node2"),
        ("do", "start"),
    ];
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let headers = format!("{}Content-Type: application/x-www-form-urlencoded\r\n", bearer(RUNS));
    let started = page.server.ask("POST", "/start", &headers, &body.join("&")).expect(303);
    assert!(started.head.contains("/live"), "{}", started.head);
    page.send(RUNS, "/api/runs?host=node1", &plan(&data, "")).expect(409);
    wait_until("both hosts on the page", || {
        let live = page.get("/api/live").expect(200).json();
        live["failed"].is_object() || live["hosts"].as_object().is_some_and(|all| all.len() == 2)
    });
    let live = page.ended();
    assert!(live["failed"].is_null(), "{live:#}");
    let (all, fleet) = (runs(sandbox), json(&runs(sandbox)[0].join("verdict.json")));
    assert_eq!(live["ended"][0]["verdict"], fleet["verdict"], "{live:#}");
    adds_up(&all[0], 2);
    let said = page.log();
    let started = "ann at 127.0.0.1: started the plan picked on node1, node2";
    assert!(said.contains(started), "{said}");
    // A program selects one host in its request.
    let answer = page.send(RUNS, "/api/runs?host=node2", &plan(Path::new(&inside), ""));
    answer.expect(200);
    assert!(page.ended()["failed"].is_null());
    adds_up(&runs(sandbox)[1], 1);
    assert!(runs(sandbox)[1].join("hosts/node2").is_dir());
}

#[test]
fn the_page_starts_on_a_fleet_only_what_its_agents_and_this_host_allow() {
    let page = Page::start(&["--allow-fleet"]);
    let data = page.secure.sandbox.data();
    let inside = data.join("{host}");
    let refused = |query: &str, plan: &str, says: &str| {
        let checked = page.send(RUNS, &format!("/api/plans/check{query}"), plan).expect(200).json();
        assert_eq!(checked["can_start"], false, "{checked:#}");
        assert!(checked["refused"].as_str().unwrap().contains(says), "{checked:#}");
        page.send(RUNS, &format!("/api/runs{query}"), plan).expect(403);
    };
    let own = plan(&inside, "");
    refused("?host=nobody", &own, "no host named nobody is connected");
    refused("", &plan(&data, ""), "no --allow-path was given");
    refused("?host=node1&find=load-line", &own, "plimsoll tune");
    // This host would run the commands of these events and send these metrics requests, so the page
    // rejects the plans.
    let proof = page.secure.at("proof");
    let event = format!(
        "[[event]]\nname = \"e\"\nat = \"1s\"\nrun = [\"touch\", {:?}]\n",
        proof.display().to_string()
    );
    refused("?host=node1", &plan(&inside, &event), "which no --allow-event allows");
    let metrics = "[[observe.metrics]]\nurl = \
                   \"http://127.0.0.1:9/metrics\"\n[observe.metrics.names]\n\"read_source.ssd\" = \
                   \"x\"\n";
    refused("?host=node1", &plan(&inside, metrics), "this host would send requests");
    refused(
        "?host=node1",
        &plan(&inside, "[fleet]\nlabels = \"a\"\n"),
        "hosts are selected on this page",
    );
    refused("?host=node1", &plan(&inside, "[fleet]\nnames = [\"node2\"]\n"), "select node2");
    page.send(LOOKS, "/api/runs?host=node1", &own).expect(403);
    // The agents reject targets that are not in their own lists.
    let outside = page.secure.at("outside");
    page.send(RUNS, "/api/runs?host=node1&host=node2", &plan(&outside, "")).expect(200);
    let failed = page.ended()["failed"]["says"].as_str().unwrap().to_owned();
    assert!(failed.contains("refused the plan") && failed.contains("--allow-path"), "{failed}");
    assert!(!outside.exists() && !proof.exists());
    assert!(fs::read_dir(page.secure.at("share/plimsoll/runs")).map_or(0, Iterator::count) == 0);
}

#[test]
fn without_the_option_the_page_starts_nothing_on_a_fleet() {
    let page = Page::start(&[]);
    let own = plan(&page.secure.sandbox.data().join("{host}"), "");
    let checked = page.send(RUNS, "/api/plans/check?host=node1", &own).expect(200).json();
    assert!(checked["refused"].as_str().unwrap().contains("--allow-fleet"), "{checked:#}");
    page.send(RUNS, "/api/runs?host=node1", &own).expect(403);
    assert!(!page.get("/start").text().contains("name=\"host\""));
    // Without a key, no plan can be signed.
    let url = ["serve", "--listen", "0", "--fleet", "nats://127.0.0.1:1", "--allow-fleet"];
    page.secure.sandbox.run(&url).expect(2).says("agents accept only signed plans");
}
