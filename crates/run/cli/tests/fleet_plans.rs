//! Commands that perform several runs, each of them on a fleet: repeats, sweeps, comparisons,
//! searches. One server and two agents are on this host.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fleets;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use fleets::Fleet;
use serde_json::Value;
use support::{CommandOutput, Sandbox, json};

const FIELDS: &str = "version = 1\ndemonstration = true\n[workload.matrix]\nfile_size = \
                      \"4MiB\"\nreads = 100\n[phases]\nwarm_up = \"200ms\"\nmeasure = \
                      \"1200ms\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"50ms\"\n";

/// Writes a plan with these targets and with these fields in its `[workload.matrix]`.
fn plan(sandbox: &Sandbox, name: &str, targets: &[(&str, PathBuf)], matrix: &str) -> String {
    let target = |(name, path): &(&str, PathBuf)| match targets.len() {
        1 => format!("[target]\npath = {:?}\n", path.display().to_string()),
        _ => format!("[[target]]\nname = {name:?}\npath = {:?}\n", path.display().to_string()),
    };
    let targets: String = targets.iter().map(target).collect();
    let fields = FIELDS
        .replace("[workload.matrix]\n", &format!("{targets}[workload.matrix]\n{matrix}\n"))
        .replace("version = 1\n", &format!("version = 1\nname = {name:?}\n"));
    let file = sandbox.path(&format!("{name}.toml"));
    fs::write(&file, fields).unwrap();
    file.display().to_string()
}

/// Returns the directory of the plan's experiment, and its fleet runs.
fn experiment(sandbox: &Sandbox, plan: &str) -> (PathBuf, Vec<PathBuf>) {
    let below = |path: &Path| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(plan);
    let all = below(&sandbox.path("share/plimsoll/runs"));
    let found: Vec<&PathBuf> = all.iter().filter(|path| named(path)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let mut runs = below(found[0]);
    runs.retain(|path| path.join("all/fleet.json").is_file());
    (found[0].clone(), runs)
}

/// Returns the fleet bundles in a directory, in the order of the runs.
fn fleets_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> =
        entries.filter(|path| path.join("all/fleet.json").is_file()).collect();
    runs.sort();
    runs
}

/// Returns the `run.json` of one host of a fleet run.
fn own(fleet: &Path, agent: &str) -> Value {
    let bundle = fs::read_dir(fleet.join("hosts").join(agent)).unwrap().flatten().next().unwrap();
    json(&bundle.path().join("run.json"))
}

fn reads(run: &Value) -> u64 {
    let of = |class: &Value| {
        class["count"].as_u64().unwrap() - class["drained"].as_u64().unwrap_or_default()
    };
    run["classes"].as_array().unwrap().iter().map(of).sum()
}

/// Returns the sum of both hosts' operations per second; each host's rate uses its own measured
/// time.
fn rate(fleet: &Path) -> f64 {
    let of = |agent: &str| {
        let run = own(fleet, agent);
        let phases = run["phases"].as_array().unwrap();
        let measured = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
        reads(&run) as f64 * 1e9 / measured["duration_ns"].as_f64().unwrap()
    };
    of("one") + of("two")
}

/// Checks that every bundle of an experiment contains the number of its run, and the run that
/// created its data.
fn belong_together(experiment: &Path, runs: &[PathBuf], hands_on: bool) {
    let id = experiment.file_name().unwrap().to_str().unwrap();
    for (number, fleet) in runs.iter().enumerate() {
        for agent in ["one", "two"] {
            let run = own(fleet, agent);
            assert_eq!(run["experiment"]["id"], id, "{run:#}");
            assert_eq!(run["experiment"]["number"], number + 1, "{run:#}");
            let before = number.checked_sub(1).map(|before| own(&runs[before], agent));
            let found = before.filter(|_| hands_on).map_or(Value::Null, |b| b["run_id"].clone());
            assert_eq!(run["experiment"]["data_of_run"], found, "{run:#}");
        }
    }
}

/// Checks that the test data that was kept for a later run has been removed at the end.
fn nothing_is_left(sandbox: &Sandbox) {
    let mut places = vec![sandbox.data()];
    while let Some(place) = places.pop() {
        for path in fs::read_dir(place).unwrap().flatten().map(|entry| entry.path()) {
            assert!(path.is_dir(), "{} is left", path.display());
            places.push(path);
        }
    }
}

#[test]
fn repeats_sweeps_comparisons_and_searches_are_carried_by_the_same_agents() {
    let fleet = Fleet::new();
    let (sandbox, _one, _two) = (&fleet.sandbox, fleet.agent("one"), fleet.agent("two"));
    let key = sandbox.path("key").display().to_string();
    let by_fleet = |arguments: &[&str]| -> CommandOutput {
        let of = ["--fleet", fleet.server.url(), "--agents", "2", "--sign", &key, "--json"];
        let ran = sandbox.run(&[arguments, &of[..]].concat());
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        ran
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * b;
    let data = || [("", sandbox.data().join("{host}"))];
    let paced = "sizes = \"4KiB\"\narrival = \"constant\"\nrate = 300";

    let repeated = plan(sandbox, "repeated", &data(), paced);
    let set = ["--set", "repeat.runs=2", "--set", "repeat.fresh=false"];
    let ran = by_fleet(&[&["run", &repeated], &set[..]].concat()).json();
    let (place, runs) = experiment(sandbox, "repeated");
    assert_eq!(runs.len(), 2);
    belong_together(&place, &runs, true);
    nothing_is_left(sandbox);
    let reported = &ran["metrics"].as_array().unwrap()[0];
    assert_eq!(reported["name"], "achieved_iops_per_s", "{ran:#}");
    for (run, value) in runs.iter().zip(reported["values"].as_array().unwrap()) {
        assert!(near(value.as_f64().unwrap(), rate(run)), "{value} {}", rate(run));
    }

    let sizes = "sizes = [\"4KiB\", \"16KiB\"]\nqueue_depth = 2";
    let swept = plan(sandbox, "swept", &data(), sizes);
    let ran = by_fleet(&["sweep", &swept]).json();
    let (place, runs) = experiment(sandbox, "swept");
    belong_together(&place, &runs, true);
    nothing_is_left(sandbox);
    let points = ran["points"].as_array().unwrap();
    assert_eq!((points.len(), runs.len()), (2, 2), "{ran:#}");
    for (run, point) in runs.iter().zip(points) {
        let stated = point["rate_per_s"].as_f64().unwrap();
        assert!(near(stated, rate(run)), "{stated} {}", rate(run));
        assert_eq!(point["run_id"], run.file_name().unwrap().to_str().unwrap());
    }
    assert_eq!((&points[0]["size_bytes"], &points[1]["size_bytes"]), (&4096.into(), &16384.into()));

    let sides = ["a", "b"].map(|side| (side, sandbox.data().join(side).join("{host}")));
    for (_, path) in &sides {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    let sides = plan(sandbox, "sides", &sides, paced);
    let ran = by_fleet(&["compare", &sides, "--few", "--set", "repeat.runs=1"]).json();
    assert_eq!(ran["names"], serde_json::json!(["a", "b"]), "{ran:#}");
    let (place, runs) = experiment(sandbox, "sides");
    belong_together(&place, &runs, false);
    let of = |run: &PathBuf| own(run, "one")["experiment"]["arm"].clone();
    let mut arms: Vec<Value> = runs.iter().map(of).collect();
    arms.sort_by_key(ToString::to_string);
    assert_eq!(arms, ["a", "b"]);
    // Only runs of the same arm reuse the test data of an earlier run.
    let handed =
        ["--few", "--set", "repeat.runs=2", "--set", "repeat.fresh=false", "--set", "name=handed"];
    by_fleet(&[&["compare", &sides][..], &handed].concat());
    let (_, runs_on) = experiment(sandbox, "handed");
    assert_eq!(runs_on.len(), 4);
    for run in runs_on.iter().flat_map(|run| [own(run, "one"), own(run, "two")]) {
        let (arm, path) =
            (run["experiment"]["arm"].as_str(), run["engine"]["paths"][0]["path"].as_str());
        let on = format!("/data/{}/", arm.unwrap());
        assert!(path.unwrap().contains(&on), "{arm:?} ran on {path:?}");
        let later = run["experiment"]["number"].as_u64().unwrap() > 2;
        assert_eq!(run["experiment"]["data_of_run"].is_string(), later, "{run:#}");
    }
    nothing_is_left(sandbox);
    let again = sandbox.run(&["report", &place.display().to_string(), "--json"]).json();
    assert_eq!(again["metrics"], ran["metrics"], "the same from the bundles");

    let tuned = plan(sandbox, "tuned", &data(), "sizes = \"4KiB\"\nqueue_depth = 1");
    let ran = by_fleet(&["tune", &tuned, "--max", "4", "--steps", "2"]).json();
    let (place, runs) = experiment(sandbox, "tuned");
    belong_together(&place, &runs, true);
    nothing_is_left(sandbox);
    for (run, step) in runs.iter().zip(ran["steps"].as_array().unwrap()) {
        let stated = step["rate_per_s"].as_f64().unwrap();
        assert!(near(stated, rate(run)), "{stated} {}", rate(run));
        let stated = json(&run.join("all/fleet.json"));
        assert_eq!(stated["experiment"]["arm"], format!("queue depth {}", step["load"]));
    }

    are_listed_and_defended(sandbox, &place, &runs);
}

/// Fleet runs appear in the list, in the ledger and in archives. A modification of their bundles is
/// detected.
fn are_listed_and_defended(sandbox: &Sandbox, place: &Path, runs: &[PathBuf]) {
    let listed = sandbox.run(&["runs", "--json", "--plan", "tuned"]).json();
    let listed = listed.as_array().unwrap().clone();
    assert_eq!(listed.len(), runs.len());
    assert!(listed.iter().all(|run| run["hosts"] == serde_json::json!(["one", "two"])));
    assert!(listed.iter().all(|run| run["position"].is_u64() && run["bundle"].is_string()));
    let one = runs[0].display().to_string();
    sandbox.run(&["verify", &one]).expect(0).says("INTACT");
    sandbox.run(&["runs", "show", &one]).says("The slowest host is ");
    let experiment = place.display().to_string();
    sandbox.run(&["verify", &experiment]).expect(0);

    let archive = sandbox.path("tuned.tar.gz").display().to_string();
    sandbox.run(&["runs", "export", &experiment, &archive]).expect(0);
    let other = Sandbox::new();
    other.run(&["runs", "import", &archive]).expect(0);
    let there = other.run(&["runs", "--json"]).json();
    assert_eq!(there.as_array().unwrap().len(), runs.len());

    let verdict = runs[0].join("verdict.json");
    let text = fs::read_to_string(&verdict).unwrap();
    fs::write(&verdict, text.replace("\"ops_per_s\"", "\"ops_per_s_\"")).unwrap();
    sandbox.run(&["verify", &one]).expect(3).says("verdict.json does not match the evidence");
    sandbox.run(&["judge", &one]);
    sandbox.run(&["verify", &one]).expect(0);

    fs::write(runs[0].join("hosts/note.txt"), "mine").unwrap();
    sandbox.run(&["runs", "rm", &experiment]).expect(5).says("note.txt: not created by Plimsoll");
    let mut left = Vec::new();
    let mut places = vec![place.to_path_buf()];
    while let Some(place) = places.pop() {
        for path in fs::read_dir(place).unwrap().flatten().map(|entry| entry.path()) {
            if path.is_dir() { places.push(path) } else { left.push(path) }
        }
    }
    assert_eq!(left, [runs[0].join("hosts/note.txt")], "all else was removed");
}

#[test]
fn a_plan_chooses_its_agents_and_says_what_differs_on_one() {
    let fleet = Fleet::new();
    let sandbox = &fleet.sandbox;
    let _one = fleet.agent_with("one", &["--label", "rack=1"]);
    let _two = fleet.agent_with("two", &["--label", "rack=2", "--label", "slow"]);
    let _three = fleet.agent_with("three", &["--label", "rack=2"]);
    let key = sandbox.path("key").display().to_string();
    let placed = plan(sandbox, "placed", &[("", sandbox.data().join("{host}"))], "rate = 300");
    let text = fs::read_to_string(&placed).unwrap();
    let other = sandbox.data().join("other");
    let text = text.replace("rate = 300", "arrival = \"constant\"\nrate = 300\nsizes = \"4KiB\"");
    let fleet_of = format!(
        "[fleet]\nlabels = \"rack=2\"\n[[fleet.host]]\nlabel = \"slow\"\nset = {{ \"target.path\" = \
         {:?}, \"workload.matrix.rate\" = 100 }}\n",
        other.display().to_string()
    );
    fs::write(&placed, format!("{text}{fleet_of}")).unwrap();
    let of = ["--fleet", fleet.server.url(), "--sign", &key, "--json"];
    let ran = sandbox.run(&[&["run", &placed][..], &of].concat());
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    let verdict = ran.json();
    let rates: Vec<(String, f64)> = verdict["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| {
            (host["name"].as_str().unwrap().to_owned(), host["ops_per_s"].as_f64().unwrap())
        })
        .collect();
    let names: Vec<&str> = rates.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["three", "two"], "{verdict:#}");
    assert!(
        (rates[0].1 / 300.0 - 1.0).abs() < 0.05 && (rates[1].1 / 100.0 - 1.0).abs() < 0.05,
        "{rates:?}"
    );
    let run = fleets::fleet_in(&sandbox.path("share/plimsoll/runs"));
    let bundle = |agent: &str| {
        fs::read_dir(run.join("hosts").join(agent)).unwrap().flatten().next().unwrap().path()
    };
    let two = fs::read_to_string(bundle("two").join("plan.toml")).unwrap();
    assert!(two.contains("/other") && !two.contains("fleet"), "{two}");
    let whole = fs::read_to_string(run.join("all/plan.toml")).unwrap();
    assert!(whole.contains("[[fleet.host]]"), "what was given is kept");
    sandbox.run(&["judge", &run.display().to_string()]);

    let named = ["--set", "fleet.names=[\"nobody\"]"];
    sandbox
        .run(&[&["run", &placed][..], &named, &of].concat())
        .expect(5)
        .says("(nobody) with rack=2");
    sandbox.run(&["run", &placed]).expect(2).says("--fleet nats://host");
    let seen = sandbox.run(&["fleet", "status", fleet.server.url(), "--json"]).json();
    let labels = |name: &str| {
        let one = seen.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        one["labels"].clone()
    };
    assert_eq!(labels("two"), serde_json::json!(["rack=2", "slow"]));
}

/// Returns the path that a host used as its target in a fleet run.
fn path_of(run: &Path, agent: &str) -> String {
    own(run, agent)["engine"]["paths"][0]["path"].as_str().unwrap().to_owned()
}

#[test]
fn where_hosts_differ_each_carries_its_own_points_steps_and_targets() {
    let fleet = Fleet::new();
    let (sandbox, _one, _two) = (&fleet.sandbox, fleet.agent("one"), fleet.agent("two"));
    let key = sandbox.path("key").display().to_string();
    let of = ["--fleet", fleet.server.url(), "--agents", "2", "--sign", &key, "--json"];
    let by_fleet =
        |arguments: &[&str]| -> CommandOutput { sandbox.run(&[arguments, &of[..]].concat()) };
    let carried = |arguments: &[&str]| -> Value {
        let ran = by_fleet(arguments);
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        ran.json()
    };
    let other = sandbox.data().join("other").display().to_string();
    let differing = |file: &str, set: &str| {
        let text = fs::read_to_string(file).unwrap();
        let set = format!("[[fleet.host]]\nname = \"two\"\nset = {{ {set} }}\n");
        fs::write(file, format!("{text}{set}")).unwrap();
    };
    let elsewhere = |run: &PathBuf| {
        assert!(path_of(run, "one").contains("/data/one"), "{}", path_of(run, "one"));
        assert!(path_of(run, "two").contains("/other"), "{}", path_of(run, "two"));
    };
    let data = || [("", sandbox.data().join("{host}"))];

    // Points of a sweep are the same on both hosts, but each host has its own path and rate.
    let sizes = "sizes = [\"4KiB\", \"16KiB\"]\narrival = \"constant\"\nrate = 200";
    let swept = plan(sandbox, "swept", &data(), sizes);
    differing(&swept, &format!("\"target.path\" = {other:?}, \"workload.matrix.rate\" = 100"));
    let ran = carried(&["sweep", &swept]);
    let (place, runs) = experiment(sandbox, "swept");
    assert_eq!((ran["points"].as_array().unwrap().len(), runs.len()), (2, 2), "{ran:#}");
    belong_together(&place, &runs, true);
    nothing_is_left(sandbox);
    for (run, point) in runs.iter().zip(ran["points"].as_array().unwrap()) {
        elsewhere(run);
        let bytes = |agent: &str| {
            let class = &own(run, agent)["classes"][0];
            class["size_bytes"].as_u64().unwrap() / class["count"].as_u64().unwrap()
        };
        assert_eq!((bytes("one"), bytes("two")), (bytes("two"), bytes("one")));
        assert_eq!(bytes("two"), point["size_bytes"].as_u64().unwrap());
        // A busy machine may lower the rates, but the plan sets their ratio to one half.
        let share = reads(&own(run, "two")) as f64 / reads(&own(run, "one")) as f64;
        assert!((share - 0.5).abs() < 0.1, "{share}");
    }
    sandbox.run(&["verify", &place.display().to_string()]).expect(0);
    for named in ["queue_depth=8", "sizes=16KiB", "reads=50"] {
        let (field, value) = named.split_once('=').unwrap();
        let set = plan(sandbox, &format!("odd-{field}"), &data(), sizes);
        differing(
            &set,
            &format!("\"workload.matrix.{field}\" = \"{value}\"")
                .replace("\"8\"", "8")
                .replace("\"50\"", "50"),
        );
        by_fleet(&["sweep", &set]).expect(2).says("cannot resolve the plan for two");
    }

    // The steps of a search change the load of both hosts equally.
    let tuned = plan(sandbox, "tuned", &data(), "sizes = \"4KiB\"\nqueue_depth = 1");
    differing(&tuned, &format!("\"target.path\" = {other:?}"));
    let ran = carried(&["tune", &tuned, "--max", "2", "--steps", "2"]);
    let (_, runs) = experiment(sandbox, "tuned");
    assert_eq!(ran["steps"].as_array().unwrap().len(), runs.len(), "{ran:#}");
    runs.iter().for_each(elsewhere);
    nothing_is_left(sandbox);
    let odd = plan(sandbox, "odd", &data(), "sizes = \"4KiB\"\nqueue_depth = 1");
    differing(&odd, "\"workload.matrix.queue_depth\" = 2");
    by_fleet(&["tune", &odd, "--max", "2", "--steps", "2"])
        .expect(2)
        .says("queue depth differs on that host, but the search must vary it on all hosts");

    // The targets are used in turns. Each host uses its own target with that name.
    let sides = ["a", "b"].map(|side| (side, sandbox.data().join(format!("{{host}}-{side}"))));
    let sides = plan(sandbox, "sides", &sides, "sizes = \"4KiB\"\nqueue_depth = 1");
    differing(&sides, &format!("\"target.b.path\" = {other:?}"));
    carried(&["compare", &sides, "--few", "--set", "repeat.runs=1"]);
    let (_, runs) = experiment(sandbox, "sides");
    let arm = |run: &PathBuf| own(run, "two")["experiment"]["arm"].as_str().unwrap().to_owned();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let expected = if arm(run) == "b" { "/other" } else { "/two-a" };
        assert!(path_of(run, "two").contains(expected), "{}", path_of(run, "two"));
        assert!(path_of(run, "one").contains(&format!("/one-{}", arm(run))));
    }
}

/// Two hosts share one mail store: each of them has half of the databases, and together they
/// generate the load of the plan.
#[test]
fn hosts_carry_shares_of_one_mail_store() {
    let fleet = Fleet::new();
    let (sandbox, _one, _two) = (&fleet.sandbox, fleet.agent("one"), fleet.agent("two"));
    // This host has no share of the load.
    let _three = fleet.agent("three");
    let key = sandbox.path("key").display().to_string();
    let place = |name: &str| {
        let path = sandbox.data().join(name);
        fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    };
    let list = |names: &[&str]| format!("{:?}", names.iter().map(|n| place(n)).collect::<Vec<_>>());
    let text = format!(
        "version = 1\nname = \"store\"\ndemonstration = true\n[requirement]\ndb_read_latency_avg = \
         \"2s\"\nlatency_max_of = \"1s\"\n[target]\ndatabases = {}\nlogs = \
         {}\n[workload.mailbox]\nmailboxes = 32\niops_per_mailbox = 1\nmailbox_size = \
         \"1MiB\"\ndatabases = 4\nthreads = 8\n[phases]\nwarm_up = \"2s\"\nmeasure = \"4s\"\nverify \
         = true\n[evidence]\nmin_measure = \"1s\"\n[fleet]\ncarries = \"share\"\nnames = [\"two\", \
         \"one\"]\n",
        list(&["d0", "d1", "d2", "d3"]),
        list(&["l0", "l1"])
    );
    let plan = sandbox.path("store.toml");
    fs::write(&plan, text).unwrap();
    let plan = plan.display().to_string();
    let check = |more: &[&str]| {
        let of = ["fleet", "check", fleet.server.url(), &plan, "--sign", &key];
        sandbox.run(&[&of, more].concat())
    };
    support::wait_until("all of them", || {
        let seen = sandbox.run(&["fleet", "status", fleet.server.url(), "--json"]).expect(0).json();
        seen.as_array().unwrap().len() == 3
    });
    let would = check(&["--json"]).expect(0).json();
    let carries = |at: usize| would[at]["carries"].as_str().unwrap();
    assert_eq!((&would[0]["name"], &would[1]["name"]), (&"one".into(), &"two".into()));
    let is_own = |says: &str, own: [&str; 3], others: &str| {
        assert!(says.contains("16 mailboxes in 2 databases"), "{says}");
        assert!(own.iter().all(|place| says.contains(place)) && !says.contains(others), "{says}");
    };
    // Shares are assigned in the order of the names in the plan.
    is_own(carries(1), ["/d0", "/d2", "/l0"], "/d1");
    is_own(carries(0), ["/d1", "/d3", "/l1"], "/d2");
    let other = ["--set", "fleet.names=[two, one, nobody, four]", "--json"];
    let would = check(&other).expect(1).json();
    let reported = would.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    assert_eq!(reported.collect::<Vec<_>>(), ["one", "two", "nobody", "four"], "who has a share");
    check(&["--set", "workload.mailbox.mailboxes=33"])
        .expect(1)
        .says("33 mailboxes cannot be divided equally");

    let of = ["--fleet", fleet.server.url(), "--sign", &key, "--json"];
    let run = |more: &[&str]| sandbox.run(&[&["run", &plan][..], &of, more].concat());
    run(&["--set", "workload.mailbox.databases=5"])
        .expect(2)
        .says("5 databases cannot be divided equally");
    let ran = run(&[]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    ran.says("two runs 16 mailboxes in 2 databases on");
    let left = fleets::fleet_in(&sandbox.path("share/plimsoll/runs"));
    let bundle = |agent: &str| {
        fs::read_dir(left.join("hosts").join(agent)).unwrap().flatten().next().unwrap().path()
    };
    let (mut required, mut achieved) = (0.0, 0.0);
    for (agent, own, others) in [("two", ["/d0", "/d2"], "/d1"), ("one", ["/d1", "/d3"], "/d0")] {
        let text = fs::read_to_string(bundle(agent).join("plan.toml")).unwrap();
        assert!(own.iter().all(|place| text.contains(place)) && !text.contains(others), "{text}");
        let verdict = json(&bundle(agent).join("verdict.json"));
        required += verdict["required_iops_per_s"].as_f64().unwrap();
        achieved += verdict["achieved_iops_per_s"].as_f64().unwrap();
    }
    assert_eq!(required, 32.0, "as the plan requires of all");
    assert!(achieved >= required || fleets::was_disturbed(&left), "{achieved} of {required}");
    let whole = fs::read_to_string(left.join("all/plan.toml")).unwrap();
    assert!(whole.contains("carries = \"share\"") && whole.contains("/d3"), "{whole}");
    let page = fs::read_to_string(left.join("report.html")).unwrap();
    assert!(page.contains("targets") && page.contains("/d1"), "who had which");
    sandbox.run(&["verify", &left.display().to_string()]).expect(0);
}

const EXPERIMENT: &str = r#"
version = 1
title = "Once and twice"
about = "Whether hosts carry twice as much where twice as much is asked."
repeats = 2
judged = ["achieved_iops_per_s"]
[[arm]]
name = "modelled"
plan = "plan.toml"
[[real]]
name = "once"
plan = "plan.toml"
places = ["a"]
[[real]]
name = "twice"
plan = "plan.toml"
places = ["b"]
change.workload.matrix.rate = 200
"#;

const ARM: &str = r#"
version = 1
name = "arm"
[target]
model = "laptop-nvme"
[workload.matrix]
file_size = "2MiB"
arrival = "constant"
rate = 100
[phases]
measure = "1s"
[evidence]
min_measure = "1s"
interval = "200ms"
"#;

/// A fleet runs the arms of an experiment on real storage: each arm has its own path, and all hosts
/// run each arm together.
#[test]
fn the_real_arms_of_an_experiment_are_carried_by_a_fleet() {
    let sandbox = Sandbox::new();
    let directory = sandbox.path("twice");
    for place in ["a", "b"] {
        fs::create_dir_all(sandbox.data().join(place)).unwrap();
    }
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("experiment.toml"), EXPERIMENT).unwrap();
    fs::write(directory.join("plan.toml"), ARM).unwrap();
    let place = |name: &str| format!("{name}={}/{{host}}", sandbox.data().join(name).display());
    let (a, b) = (place("a"), place("b"));
    let head = ["experiment", "run", directory.to_str().unwrap(), "--fleet", "local:2", "--json"];
    let real = ["--on", "real", "--path", &a, "--path", &b, "-q"];
    sandbox.run(&head).expect(2).says("a fleet cannot run models");
    let steady = ["--set", "phases.measure=\"until-steady\""];
    let refused = sandbox.run(&[&head[..], &real[..], &steady[..]].concat()).expect(2);
    refused.says("needs a fixed measurement time");
    refused.says("this plan is arm once");
    assert!(!sandbox.path("share/plimsoll/runs").exists(), "nothing was begun");
    let ran = sandbox.run(&[&head[..], &real[..]].concat());
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    let analysis = ran.json();
    let mut again = sandbox.bundles();
    assert_eq!(again.len(), 1, "{again:?}");
    let experiment = again.remove(0);
    let runs = fleets_in(&experiment);
    assert_eq!(runs.len(), 4, "{runs:?}");
    for (arm, requested) in [(0, 200.0), (1, 400.0)] {
        let arm = &analysis["arms"][arm];
        assert_eq!(arm["completed"], 2, "{arm:#}");
        let rate = arm["figures"].as_array().unwrap().iter();
        let rate = rate.clone().find(|one| one["key"] == "achieved_iops_per_s");
        let mean = rate.and_then(|one| one["mean"].as_f64()).unwrap_or_else(|| panic!("{arm:#}"));
        let is_disturbed = runs.iter().any(|run| fleets::was_disturbed(run));
        assert!((mean / requested - 1.0).abs() < 0.05 || is_disturbed, "{arm:#}");
    }
    // `analyse` reads the bundles of the hosts.
    let reported = sandbox.run(&["report", experiment.to_str().unwrap(), "--json"]);
    assert_eq!(reported.json()["arms"], analysis["arms"]);
    nothing_is_left(&sandbox);
}

/// A fleet runs fio jobs: a job with a `stonewall` between two sections, and a plan that refers to
/// a job file. All hosts run the job that was sent with the order, and the fleet bundle contains
/// this job.
#[test]
fn jobs_of_fio_are_carried_by_a_fleet() {
    let sandbox = Sandbox::new();
    let job = sandbox.path("two.fio");
    let text = "[global]\nsize=2m\nbs=4k\nrate_iops=100\nruntime=1\ntime_based\n[reading]\nrw=randread\n[writing]\nstonewall\nrw=randwrite\n";
    fs::write(&job, text).unwrap();
    let path = sandbox.data().join("{host}").display().to_string();
    let short = ["--set", "evidence.min_measure=\"1s\"", "--fleet", "local:2"];
    let ran = sandbox.run(&[&["run", job.to_str().unwrap(), "--path", &path], &short[..]].concat());
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    ran.says("all hosts start");
    let count_of = |fleet: &Path, class: &str| {
        let stated = json(&fleet.join("all/fleet.json"));
        let classes = stated["classes"].as_array().unwrap().iter();
        classes.filter(|one| one["name"].as_str().unwrap().ends_with(class)).count()
    };
    let stages = fleets_in(&sandbox.bundles()[0]);
    assert_eq!(stages.len(), 2, "{stages:?}");
    assert_eq!((count_of(&stages[0], "read"), count_of(&stages[0], "write")), (1, 0));
    assert_eq!((count_of(&stages[1], "read"), count_of(&stages[1], "write")), (0, 1));
    nothing_is_left(&sandbox);
    let own = Sandbox::new();
    fs::write(own.path("one.fio"), text.replace("stonewall\n", "")).unwrap();
    let plan = own.path("of-a-job.toml");
    let target = own.data().join("{host}");
    let fields = format!(
        "version = 1\nname = \"of-a-job\"\n[target]\npath = {:?}\n[workload.fio]\njob = \
         \"one.fio\"\n[evidence]\nmin_measure = \"1s\"\n",
        target.display().to_string()
    );
    fs::write(&plan, fields).unwrap();
    let ran = own.run(&["run", plan.to_str().unwrap(), "--fleet", "local:2", "-q"]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    let fleet = fleets::fleet_in(&own.path("share/plimsoll/runs"));
    assert_eq!(
        fs::read_to_string(fleet.join("all/job.fio")).unwrap(),
        fs::read_to_string(own.path("one.fio")).unwrap()
    );
    assert_eq!((count_of(&fleet, "read"), count_of(&fleet, "write")), (1, 1));
    own.run(&["verify", fleet.to_str().unwrap()]).expect(0).says("INTACT");
    // The seal of the fleet bundle includes the job.
    fs::write(fleet.join("all/job.fio"), "[other]\nrw=read\n").unwrap();
    own.run(&["verify", fleet.to_str().unwrap()]).expect(3);
}
