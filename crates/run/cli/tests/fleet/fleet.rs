//! A plan on several hosts. The test starts its own agents and its own NATS server, and ends them
//! by process id.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::fleets::{
    Delay, Fleet, Hosts, PATIENCE, Process, RATE, SWITCH, adds_up, fleet_in, plan, was_disturbed,
};
use crate::support::{self, Sandbox, json};
use serde_json::Value;

#[test]
fn one_two_and_four_agents_of_this_host_carry_what_is_asked_of_each() {
    let one = Sandbox::new();
    let mut of_one = None;
    for hosts in [1, 2, 4] {
        let sandbox = if hosts == 1 { &one } else { &Sandbox::new() };
        let plan = plan(sandbox, &sandbox.data().join("{host}"), "3s");
        let ran = sandbox.run(&["run", &plan, "--fleet", &format!("local:{hosts}")]);
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        let fleet = fleet_in(&sandbox.path("share/plimsoll/runs"));
        let rate = adds_up(&fleet, hosts);
        let requested = RATE * hosts as f64;
        println!("{hosts} hosts: {rate:.1}/s of {requested}/s");
        assert!((rate / requested - 1.0).abs() < 0.05 || was_disturbed(&fleet), "{}", ran.stdout);
        assert!(sandbox.left_in_data().iter().all(|name| name.starts_with("local-")));
        assert!(fs::read_dir(sandbox.path("cache/plimsoll")).unwrap().next().is_none(), "scratch");
        let before = of_one.get_or_insert_with(|| fleet.clone()).clone();
        if hosts == 2 {
            are_compared(sandbox, &before, &fleet);
            ran.says("all");
            ran.says("local-1");
            ran.says("one machine");
            ran.says("what the figures can show");
            stands_as_on_its_hosts(&fleet);
            what_was_left_is_judged_again_and_defended(sandbox, &fleet);
        }
    }
}

/// Compares two runs of the same plan; the second run uses one more host. The comparison uses the
/// totals of all hosts, and the number of hosts is one of the conditions.
fn are_compared(sandbox: &Sandbox, before: &Path, after: &Path) {
    let sides = [format!("before={}", before.display()), format!("after={}", after.display())];
    let compare = |more: &[&str]| {
        sandbox.run(&[&["compare", &sides[0], &sides[1], "--json"][..], more].concat())
    };
    let compared = compare(&[]).json();
    let rate = &compared["metrics"][0];
    assert_eq!(rate["key"], "achieved_iops_per_s", "{compared:#}");
    let ratio = rate["sides"][1]["ratio"].as_f64().unwrap();
    assert!((ratio / 2.0 - 1.0).abs() < 0.05 || was_disturbed(before) || was_disturbed(after));
    let unlike = compared["unlike"].as_array().unwrap();
    let hosts = unlike.iter().find(|one| one["name"] == "hosts").unwrap();
    assert_eq!(hosts["values"], serde_json::json!(["1", "2"]), "{compared:#}");
    let requested = compare(&["--factor", "hosts"]).json();
    let hosts = requested["unlike"].as_array().unwrap().iter().find(|one| one["name"] == "hosts");
    assert_eq!(hosts.unwrap()["factor"], true, "{requested:#}");
    let keys =
        requested["metrics"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap());
    assert!(
        keys.clone().any(|key| key == "matrix.read_latency_ns_p50"),
        "{:?}",
        keys.collect::<Vec<_>>()
    );
    let own = fs::read_dir(after.join("hosts/local-1")).unwrap().flatten().next().unwrap().path();
    let other = format!("other={}", own.display());
    sandbox.run(&["compare", &sides[0], &other]).expect(2).says("not a fleet run");
}

/// Checks that a fleet's verdict contains every claim, with the weakest status that the claim has
/// on any host.
fn stands_as_on_its_hosts(fleet: &Path) {
    let verdict = json(&fleet.join("verdict.json"));
    let claims = verdict["claims"].as_object().unwrap();
    assert!(!claims.is_empty(), "{verdict:#}");
    for host in ["local-1", "local-2"] {
        let bundle = fs::read_dir(fleet.join("hosts").join(host)).unwrap().flatten().next();
        let own = json(&bundle.unwrap().path().join("verdict.json"));
        for (claim, standing) in own["claims"].as_object().unwrap() {
            let good = |standing: &Value| standing.as_str().unwrap().starts_with("believable");
            assert!(!good(&claims[claim]) || good(standing), "{claim}: {standing} on {host}");
        }
        for finding in own["findings"].as_array().unwrap() {
            let all = verdict["host_findings"].as_array().unwrap();
            assert!(all.iter().any(|reported| reported["rule"] == finding["rule"]), "{finding:#}");
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

/// The total of all hosts is checked against the counters of a storage system with two controllers.
/// A host sees only the counters of the controller for its half of the load; the coordinator polls
/// both controllers.
#[test]
fn the_sum_of_all_hosts_is_held_against_what_the_system_counted() {
    let system = Sandbox::new();
    let controllers = [Controller::start(&system), Controller::start(&system)];
    let named = |endpoint: &str| {
        format!(
            "[[observe.metrics]]\nurl = {endpoint:?}\ninterval = \
             \"200ms\"\n[observe.metrics.names]\n\"read_source.ssd\" = \
             'plimsoll_model_reads_total{{place=\"ssd\"}}'\n\"read_source.cache\" = \
             'plimsoll_model_reads_total{{place=\"dram\"}}'\n"
        )
    };
    let run = |named: &str| {
        let sandbox = Sandbox::new();
        let text = format!(
            "version = 1\nname = \"controllers\"\n[target]\nnfs = \
             {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\nreads = 90\narrival = \
             \"constant\"\nrate = 200\n[phases]\nmeasure = \"4s\"\n[evidence]\nmin_measure = \
             \"1s\"\ninterval = \"500ms\"\n{named}[fleet]\n[[fleet.host]]\nname = \"local-2\"\nset \
             = {{ \"target.nfs\" = {:?} }}\n",
            controllers[0].nfs, controllers[1].nfs
        );
        let plan = sandbox.path("controllers.toml");
        fs::write(&plan, text).unwrap();
        let ran = sandbox.run(&["run", plan.to_str().unwrap(), "--fleet", "local:2", "-q"]);
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        let left = fleet_in(&sandbox.path("share/plimsoll/runs"));
        let fleet = json(&left.join("verdict.json"));
        let mut found = fleet["findings"].as_array().unwrap().iter();
        let found = found.find(|finding| finding["rule"] == "fleet-system").cloned();
        (fleet, found)
    };
    let both = controllers.each_ref().map(|one| named(&one.metrics)).concat();
    let (fleet, found) = run(&both);
    let passed = fleet["passed"].as_array().unwrap().iter().any(|rule| rule == "fleet-system");
    assert!(passed && found.is_none(), "{fleet:#}");
    // The counters of one host's controller include only half of the load.
    let (fleet, found) = run(&named(&controllers[0].metrics));
    let found = found.unwrap_or_else(|| panic!("{fleet:#}"));
    assert_eq!(found["outcome"], "unknown", "{found:#}");
    assert!(["INCONCLUSIVE", "INVALID"].iter().any(|kind| fleet["verdict"] == *kind), "{fleet:#}");
    let counted = found["evidence"]["read_by_the_system"].as_f64().unwrap();
    let requested = found["evidence"]["read_count"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&(counted / requested)), "{found:#}");
}

/// The report states the slow link of a host. The two hosts have separate networks and separate
/// stores, and one network is limited to 20 Mbit/s.
#[test]
fn a_host_whose_link_is_slow_is_told_with_its_link() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(2);
    let (_server, url) = (hosts.server(&sandbox), format!("nats://{SWITCH}:4222"));
    let _stores = [2049, 2050].map(|port| {
        let mut store = hosts.plimsoll(&sandbox, 0, "store");
        store.args(["model", "serve", "zfs-flash", "--json", "--nfs", &format!("{SWITCH}:{port}")]);
        Controller::say(store.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    });
    let key = sandbox.path("key");
    sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
    let export = format!("nfs://{SWITCH}/e");
    // Returns the address of a store with the port number that the allow-list contains.
    let store_of = |port: u16| format!("{export}?nfsport={port}&mountport={port}");
    let (first, second) = (store_of(2049), store_of(2050));
    let allowed = ["--allow-nfs", first.as_str(), "--allow-nfs", second.as_str()];
    let _agents = [1, 2].map(|at| hosts.agent(&sandbox, at, &url, &allowed));
    let is_limited = hosts.limit(2, 20);
    let store = |port: u16| format!("{export}/{{host}}?nfsport={port}&mountport={port}");
    let text = format!(
        "version = 1\nname = \"links\"\n[target]\nnfs = {:?}\n[workload.matrix]\nfile_size = \
         \"4MiB\"\nsizes = \"32KiB\"\nreads = 50\nclients = 4\nqueue_depth = 2\n[phases]\nwarm_up = \
         \"500ms\"\nmeasure = \"3s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \
         \"500ms\"\n[fleet]\n[[fleet.host]]\nname = \"node2\"\nset = {{ \"target.nfs\" = {:?} }}\n",
        store(2049),
        store(2050)
    );
    let plan = sandbox.path("links.toml");
    fs::write(&plan, text).unwrap();
    hosts.wait_for_agents(&sandbox, 2);
    let mut run = hosts.plimsoll(&sandbox, 0, "here");
    run.args(["run", plan.to_str().unwrap(), "--fleet", &url, "--agents", "2", "--sign"]).arg(&key);
    let ran = support::CommandOutput::from(run.stdin(Stdio::null()).output().unwrap());
    // The verdict on a store in memory must be INVALID.
    assert_eq!(ran.code, 3, "{}\n{}", ran.stdout, ran.stderr);
    let fleet = fleet_in(&sandbox.path("share-here/plimsoll/runs"));
    let verdict = json(&fleet.join("verdict.json"));
    let passed = verdict["passed"].as_array().unwrap();
    assert!(passed.iter().any(|rule| rule == "fleet-network"), "{verdict:#}");
    for name in ["node1", "node2"] {
        let bundle = fs::read_dir(fleet.join("hosts").join(name)).unwrap().next().unwrap().unwrap();
        went_over_eth0(&bundle.path());
    }
    if !is_limited {
        return println!("this kernel has no queue that limits a link");
    }
    let mut findings = verdict["findings"].as_array().unwrap().iter();
    let slow = findings.find(|finding| finding["rule"] == "fleet-balance");
    let says = slow.unwrap_or_else(|| panic!("{verdict:#}"))["says"].as_str().unwrap();
    println!("{says}");
    assert!(says.starts_with("host node2 reaches"), "{says}");
    assert!(says.contains("TCP segments"), "{says}");
}

/// Checks that the interfaces in the bundle counted as many bytes as the load reports, in total and
/// over time.
fn went_over_eth0(bundle: &Path) {
    let (run, observed) = (json(&bundle.join("run.json")), json(&bundle.join("observed.json")));
    let interfaces = observed["links"]["interfaces"].as_array().unwrap();
    let eth0 = interfaces.iter().find(|one| one["name"] == "eth0").unwrap();
    for (is_read, counter) in [(true, "received_bytes"), (false, "sent_bytes")] {
        let classes = run["classes"].as_array().unwrap().iter();
        let bytes: u64 = classes
            .filter(|class| class["is_read"] == is_read)
            .map(|class| class["size_bytes"].as_u64().unwrap())
            .sum();
        let counted = eth0["counters"][counter].as_u64().unwrap();
        assert!(bytes > 0 && counted as f64 > bytes as f64 * 0.5, "{bytes} {counter}: {eth0:#}");
        let series = fs::read_to_string(bundle.join("series.csv")).unwrap();
        assert!(series.contains(&format!(",link.eth0.{counter},")), "{series}");
    }
    assert!(observed["links"]["tcp"]["sent_segments"].as_u64().unwrap() > 0);
}

/// A served model, which acts as a controller with its own counters.
struct Controller {
    _process: Process,
    nfs: String,
    metrics: String,
}

impl Controller {
    fn start(sandbox: &Sandbox) -> Self {
        let requested = ["model", "serve", "zfs-flash", "--nfs", "0", "--metrics", "0", "--json"];
        Self::say(sandbox.start(&requested))
    }

    /// Waits until a served model has printed its address.
    fn say(mut child: Child) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while serde_json::from_str::<Value>(&said).is_err() {
            assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        Self { _process: Process(child), nfs: text("nfs"), metrics: text("metrics") }
    }
}

#[test]
fn what_a_fleet_can_not_do_is_said_before_anything_is_started() {
    let sandbox = Sandbox::new();
    let shared = plan(&sandbox, &sandbox.data(), "3s");
    sandbox.run(&["run", &shared, "--fleet", "local:2"]).expect(2).says("{host}");
    sandbox.run(&["run", &shared, "--fleet", "local:0"]).expect(2).says("local:4");
    sandbox.run(&["run", &shared, "--fleet", "local:1", "--keep"]).expect(2).says("--keep");
    sandbox
        .run(&["run", &shared, "--fleet", "local:1", "--set", "phases.measure=until-steady"])
        .expect(2)
        .says("needs a fixed measurement time");
    sandbox
        .run(&[
            "tune",
            &shared,
            "--fleet",
            "local:1",
            "--dry-run",
            "--set",
            "evidence.interval=100ms",
        ])
        .expect(2)
        .says("fleet check");
    let several = "workload.matrix.sizes=[\"4KiB\", \"8KiB\"]";
    let swept = ["run", &shared, "--fleet", "local:1", "--set", several];
    sandbox.run(&swept).expect(2).says("plimsoll sweep");
    sandbox.run(&["run", &shared, "--agents", "2"]).expect(2);
    sandbox.run(&["agent", "--server", "nats://127.0.0.1:1"]).expect(2).says("--trust");
    assert!(sandbox.bundles().is_empty());
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
    while !fs::read_to_string(&log).unwrap().contains("warm-up: all hosts start") {
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
    assert!(sandbox.path("share-one/plimsoll/runs").is_dir(), "the bundle also stays on its host");
}

#[test]
fn a_host_that_can_not_begin_is_named_and_ends_the_others_without_an_operator() {
    let fleet = Fleet::new();
    let (sandbox, _one, _two) = (&fleet.sandbox, fleet.agent("one"), fleet.agent("two"));
    let plan = plan(sandbox, &sandbox.data().join("{host}"), "3s");
    fs::create_dir(sandbox.data().join("two")).unwrap();
    fs::write(sandbox.data().join("two/plimsoll-together"), "a file is in the way").unwrap();
    let key = sandbox.path("key").display().to_string();
    let arguments =
        ["run", &plan, "--fleet", fleet.server.url(), "--agents", "2", "--sign", &key, "--json"];
    let ran = sandbox.run(&arguments);
    let verdict = ran.json();
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.contains("two could not run") && !reason.contains('\n'), "{reason}");
    assert_eq!(ran.code, 3, "nobody interrupted it: {}", ran.stderr);
}

#[test]
fn one_two_and_four_hosts_far_from_the_server_carry_one_load_and_begin_together() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(4);
    let _server = hosts.server(&sandbox);
    let url = format!("nats://{SWITCH}:4222");
    let key = sandbox.path("key");
    sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
    // The network delays of the four hosts are 1, 2, 3 and 4 ms in each direction.
    let _delays: Vec<Delay> =
        (1..=4).map(|at| Delay::start(&hosts, at, Duration::from_millis(at as u64))).collect();
    let data = sandbox.data().display().to_string();
    let allowed = ["--allow-path", &data];
    let _agents: Vec<Process> =
        (1..=4).map(|at| hosts.agent(&sandbox, at, Delay::URL, &allowed)).collect();
    let plan = plan(&sandbox, &sandbox.data().join("{host}"), "3s");
    for count in [1, 2, 4] {
        // Waits until all agents are connected, because the first agents by name are used.
        hosts.wait_for_agents(&sandbox, 4);
        let mut run = hosts.plimsoll(&sandbox, 0, "here");
        run.args(["run", &plan, "--fleet", &url, "--agents", &count.to_string(), "--sign"])
            .arg(&key);
        let ran = support::CommandOutput::from(run.stdin(Stdio::null()).output().unwrap());
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        let fleet = fleet_in(&sandbox.path("share-here/plimsoll/runs"));
        let rate = adds_up(&fleet, count);
        println!("{count} namespaces: {rate:.1}/s of {}/s", RATE * count as f64);
        let share = rate / RATE / count as f64;
        assert!((share - 1.0).abs() < 0.05 || was_disturbed(&fleet), "{}", ran.stdout);
        let stated = json(&fleet.join("all/fleet.json"));
        let host = |name: &'static str| {
            let hosts = stated["hosts"].as_array().unwrap();
            hosts.iter().map(|host| host[name].as_str().unwrap()).collect::<Vec<_>>()
        };
        let addresses = ["10.231.7.1", "10.231.7.2", "10.231.7.3", "10.231.7.4"];
        assert_eq!(host("address"), addresses[..count]);
        // The delay is long, so the error of the clock offset may be as large as half the round
        // trip.
        let error_ns = stated["window"]["start_skew_error_ns"].as_u64().unwrap();
        assert!(count == 1 || error_ns >= 1_000_000, "{stated:#}");
        assert!(fleet.join("all/SHA256SUMS.minisig").is_file(), "it is signed");
        fs::rename(&fleet, sandbox.path(&format!("of-{count}"))).unwrap();
    }
}

/// Agents on the same host share one calibration. If each agent measured this host's ceilings, the
/// measurements would disturb each other for two minutes.
#[test]
fn agents_of_this_host_share_one_calibration() {
    let sandbox = Sandbox::new();
    let plan = plan(&sandbox, &sandbox.data().join("{host}"), "1s");
    let mut command = sandbox.command(&["run", &plan, "--fleet", "local:3", "-q"]);
    let ran = command.env_remove("PLIMSOLL_CALIBRATE").output().unwrap();
    assert!([0, 3].contains(&ran.status.code().unwrap()), "{ran:?}");
    let hosts = fs::read_dir(fleet_in(&sandbox.path("share/plimsoll/runs")).join("hosts")).unwrap();
    let bundles = hosts.flatten().flat_map(|host| fs::read_dir(host.path()).unwrap().flatten());
    let taken: Vec<u64> = bundles
        .map(|bundle| json(&bundle.path().join("environment.json")))
        .map(|environment| environment["calibration"]["taken_unix_ns"].as_u64().unwrap())
        .collect();
    assert!(taken.len() == 3 && taken.iter().all(|time| *time == taken[0]), "{taken:?}");
}
