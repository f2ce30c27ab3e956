//! Runs a plan on one, two and four agents in this process with a real server. Compares the fleet's
//! sums with the bundles of the hosts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::HostEnd;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::local::PrivateServer;
use plimsoll_fleet::{agent, coordinator};
use plimsoll_plan::Plan;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::fleet::{FleetBundle, read};
use plimsoll_runner::places::Places;

/// Rate in I/Os per second that the plan requests from each host. The target can sustain far more.
const RATE: f64 = 200.0;
/// Rules that other work on this machine can make fail.
const DISTURBANCE_RULES: [&str; 3] = ["cpu-steal", "noisy-neighbour", "was-stopped"];

fn places(root: &Path, signer: Option<Signer>) -> Places {
    Places {
        state: root.join("state"),
        runs: root.join("runs"),
        cache: root.join("cache"),
        signer: signer.map(Arc::new),
    }
}

/// Agent that runs in a thread of this process.
pub struct Agent(std::thread::JoinHandle<Result<(), String>>);

impl Agent {
    /// Starts agent `nodeN`, which trusts the key in `root`. The first call creates the key.
    pub fn start(root: &Path, server: &PrivateServer, number: u32, stop: &Arc<AtomicBool>) -> Self {
        fs::create_dir_all(root.join("data")).unwrap();
        let own = agent::Options {
            server: Server { url: server.url().to_owned(), ..Server::default() },
            name: format!("node{number}"),
            labels: Vec::new(),
            trust: vec![signer(root).public().to_owned()],
            allow: Allow::new(&[root.join("data")], &[], &[]).unwrap(),
            places: places(&root.join(format!("node{number}")), None),
            bundles: None,
            coordinator_timeout: plimsoll_fleet::agent::COORDINATOR_TIMEOUT,
        };
        let stop = Arc::clone(stop);
        Self(std::thread::spawn(move || {
            let mut say = |text: &str| println!("{text}");
            agent::run(&own, &stop, &mut say).map_err(|error| error.to_string())
        }))
    }

    pub fn join(self) {
        self.0.join().unwrap().unwrap();
    }
}

/// Returns the coordinator's key.
fn signer(root: &Path) -> Signer {
    let key = root.join("key");
    if !key.exists() {
        make_keys(&key, None).unwrap();
    }
    Signer::read(&key, || None).unwrap()
}

pub fn plan(root: &Path) -> Plan {
    let text = format!(
        "version = 1\nname = \"together\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\nsizes = \"4KiB\"\nreads = 70\narrival = \
         \"constant\"\nrate = {RATE}\n[phases]\nwarm_up = \"500ms\"\nmeasure = \
         \"3s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"500ms\"\n",
        root.join("data/{host}").display().to_string()
    );
    Plan::parse(&text, "together.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

pub fn coordinator_options(
    root: &Path,
    server: &PrivateServer,
    count: u32,
) -> coordinator::Options {
    coordinator::Options {
        server: Server { url: server.url().to_owned(), ..Server::default() },
        agents: Some(count),
        names: Vec::new(),
        places: places(root, Some(signer(root))),
        bundles: root.join("runs"),
    }
}

/// Runs the plan on `count` agents. If `again` is true, starts another agent with the name of the
/// last agent during the run, which must be refused.
fn run(root: &Path, count: u32, again: bool) -> FleetBundle {
    let stop = Arc::new(AtomicBool::new(false));
    let server = PrivateServer::start(&root.join("nats"), &stop).unwrap();
    let start = |number: u32| Agent::start(root, &server, number, &stop);
    let agents: Vec<_> = (1..=count).map(start).collect();
    let plan = plan(root);
    let options = coordinator_options(root, &server, count);
    let never = AtomicBool::new(false);
    let mut tell = |event: coordinator::Event| {
        println!("{event:?}");
        let begins = |text: &String| text == "warm-up: all hosts start";
        if again && matches!(&event, coordinator::Event::Note(text) if begins(text)) {
            let refused = start(count).0.join().unwrap().unwrap_err();
            let process = format!("(process {})", std::process::id());
            assert!(refused.contains("with this name already runs"), "{refused}");
            assert!(refused.contains(&process), "{refused}");
        }
    };
    let left =
        coordinator::run(&coordinator::RunRequest::whole_plan(&plan), &options, &never, &mut tell);
    stop.store(true, Ordering::Relaxed);
    agents.into_iter().for_each(Agent::join);
    left.unwrap_or_else(|error| panic!("{error}"))
}

fn check_sums(left: &FleetBundle, count: usize) {
    let fleet = &left.fleet;
    assert_eq!(fleet.hosts.len(), count);
    let (mut within, mut latencies, mut disturbed) = (0, 0, false);
    for host in &fleet.hosts {
        assert_eq!(host.end, HostEnd::Reported, "{host:#?}");
        let run = host.run.as_ref().unwrap();
        let bundle = left.directory.join("hosts").join(&host.name).join(&run.run_id);
        let own = Bundle::read(&bundle).unwrap();
        within += own.run.classes.iter().map(|class| class.count_within()).sum::<u64>();
        latencies += own.run.classes.iter().map(|class| class.count).sum::<u64>();
        assert!(run.starts.iter().any(|start| start.kind == PhaseKind::WarmUp), "{run:#?}");
        assert_eq!(host.clock.len(), 2, "before and after");
        for offset in &host.clock {
            // All agents use the same clock, so the true offset is zero. The measured offset must
            // not exceed its error.
            assert!(offset.offset_ns.unsigned_abs() <= offset.error_ns, "{offset:?}");
        }
        let judged = plimsoll_judge::judge(&own);
        disturbed |= judged.findings.iter().any(|f| DISTURBANCE_RULES.contains(&f.rule.as_str()));
    }
    let window = fleet.window.unwrap();
    assert!(!window.cut, "{window:?}");
    assert_eq!(fleet.classes.iter().map(|class| class.count).sum::<u64>(), within);
    assert_eq!(fleet.classes.iter().map(|class| class.latency_count).sum::<u64>(), latencies);
    let judged = &left.verdict;
    assert!(judged.passed.iter().any(|rule| rule == "fleet-sums"), "{judged:#?}");
    let reported = judged.findings.iter().any(|finding| finding.rule == "fleet-together");
    let skew_ns = window.start_skew_ns;
    assert!(reported || skew_ns < 5_000_000 + window.start_skew_error_ns, "{window:?}");
    let rate = judged.total.as_ref().unwrap().ops_per_s;
    let requested = RATE * count as f64;
    println!(
        "{count} agents: {rate:.1}/s of {requested}/s, {within} I/Os, starts {skew_ns} ns apart, {window:?}"
    );
    assert!((rate / requested - 1.0).abs() < 0.05 || disturbed, "{judged:#?}");
    assert_eq!(read(&left.directory).unwrap().verdict, left.verdict, "judged again");
}

fn run_and_check(count: u32) {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let left = run(root.path(), count, false);
    check_sums(&left, count as usize);
    let fleet = left.directory.join("all/fleet.json");
    let text = fs::read_to_string(&fleet).unwrap();
    fs::write(&fleet, text.replace("node1", "node9")).unwrap();
    let error = read(&left.directory).unwrap_err().to_string();
    assert!(error.contains("fleet.json was changed"), "{error}");
}

#[test]
fn one_agent_reaches_the_requested_rate() {
    run_and_check(1);
}

#[test]
fn two_agents_reach_twice_the_rate() {
    run_and_check(2);
}

#[test]
fn four_agents_reach_four_times_the_rate() {
    run_and_check(4);
}

#[test]
fn a_second_agent_with_the_same_name_is_refused_and_does_not_disturb_the_run() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    check_sums(&run(root.path(), 2, true), 2);
}
