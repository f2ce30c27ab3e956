//! Built-in plans, plans with changed fields, runs without a plan, and messages before a run
//! begins.

use std::path::Path;

use crate::support::port::free_port;
use crate::support::{self, CommandOutput, Sandbox, SmallPlan};
use plimsoll_plan::{Workload, gallery};

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The shortest durations that are possible for every plan in this test.
const SHORT: [&str; 4] = [
    "phases.warm_up=0s",
    "phases.measure=1s",
    "evidence.min_measure=1s",
    "evidence.interval=100ms",
];
const SMALL_STORE: [&str; 7] = [
    "requirement.latency_max_of=1s",
    "workload.mailbox.mailboxes=16",
    "workload.mailbox.mailbox_size=4MiB",
    "workload.mailbox.databases=2",
    "workload.mailbox.threads_per_database=2",
    "workload.mailbox.cache=8MiB",
    "workload.mailbox.checkpoint_depth=2MiB",
];

fn with_sets<'a>(first: &[&'a str], sets: &[&'a str]) -> Vec<&'a str> {
    let mut all = first.to_vec();
    sets.iter().for_each(|set| all.extend(["--set", set]));
    all
}

fn ran_and_judged_alike(sandbox: &Sandbox, ran: &CommandOutput, name: &str) {
    assert!([0, 1, 3].contains(&ran.code), "{name}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
    let bundle = sandbox.bundle();
    let again = sandbox.run(&["judge", bundle.to_str().unwrap()]);
    assert_eq!(again.code, ran.code, "{name}: {}\n{}", again.stdout, again.stderr);
    sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
}

#[test]
fn each_plan_of_the_gallery_runs_in_small_and_its_bundle_is_in_order() {
    for ready in gallery() {
        let sandbox = Sandbox::new();
        let data = text(&sandbox.data());
        let plan = plimsoll_plan::Plan::parse(ready.text, ready.name).unwrap().resolve();
        let mut sets: Vec<&str> = SHORT.to_vec();
        match &plan.workload {
            Workload::Mailbox(_) => sets.extend(SMALL_STORE),
            Workload::Matrix(matrix) => {
                sets.push("workload.matrix.file_size=4MiB");
                let large = |size: &plimsoll_plan::SizeShare| size.size_bytes > 4 << 20;
                if matrix.streams.iter().any(|s| s.sizes.iter().any(large)) {
                    sets.push("workload.matrix.sizes=1MiB");
                }
                if matrix.streams.iter().any(|s| s.files.files_per_share > 4) {
                    sets.push("workload.matrix.files=8");
                }
                if matrix.streams.iter().any(|s| s.arrival.is_open()) {
                    sets.push("workload.matrix.rate=100");
                }
            }
        }
        if ready.text.contains("first_byte_latency") {
            let says =
                "limits the time to the first byte of an object, but the target is not a bucket";
            let without = "requirement.first_byte_latency_p99=";
            let refused = sandbox.run(&["run", ready.name, "--path", &data]).expect(2);
            refused.says(says);
            refused.says(&format!("complete reads: --set {without}"));
            refused.says(&format!("{} is a built-in plan", ready.name));
            sets.push(without);
        }
        if plan.events.iter().any(|event| event.prompt.is_some()) {
            let refused =
                ["run", ready.name, "--path", &data, "--set", "workload.matrix.file_size=4MiB"];
            let says = "needs an operator, but there is no terminal";
            sandbox.run(&refused).expect(2).says(says);
            continue;
        }
        if !plan.events.is_empty() {
            sets.extend(["event.at=200ms", "event.undo_at=600ms"]);
        }
        let ran = sandbox.run(&with_sets(&["run", ready.name, "--path", &data], &sets));
        ran_and_judged_alike(&sandbox, &ran, ready.name);
        assert!(sandbox.left_in_data().is_empty(), "{}", ready.name);
    }
}

#[test]
fn a_plan_runs_by_name_on_other_places_and_its_bundle_says_what_ran() {
    let sandbox = Sandbox::new();
    let (data, logs) = (text(&sandbox.data()), text(&sandbox.path("logs")));
    std::fs::create_dir(&logs).unwrap();
    let mut sets: Vec<&str> = SHORT.to_vec();
    sets.extend(SMALL_STORE);
    let first = ["run", "exchange-1000-heavy", "--path", &data, "--logs", &logs];
    let ran = sandbox.run(&with_sets(&first, &sets));
    ran_and_judged_alike(&sandbox, &ran, "exchange-1000-heavy");
    let bundle = sandbox.bundle();
    let given = std::fs::read_to_string(bundle.join("plan.toml")).unwrap();
    assert!(given.starts_with("# A thousand heavy mailboxes"), "{given}");
    assert!(given.contains("measure = \"1s\"") && given.contains(&logs), "{given}");
    let resolved = std::fs::read_to_string(bundle.join("resolved.toml")).unwrap();
    assert!(resolved.contains("measure_ns = 1000000000"), "{resolved}");
    ran.says("needed");
    ran.says("at the earliest");
}

#[test]
fn a_run_needs_no_plan_and_fios_words_are_told() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    let fio =
        ["run", "--path", &data, "--rw", "randrw", "--bs", "8k", "--iodepth", "2", "--size", "4m"];
    let ran = sandbox
        .run(&[&fio[..], &["--numjobs", "2", "--runtime", "1", "--rwmixread", "70"]].concat());
    ran_and_judged_alike(&sandbox, &ran, "one line");
    for says in [
        "--bs 8k: transfers of 8KiB (--size 8KiB)",
        "--size 4m with --bs: a file of 4MiB",
        "--rw randrw: random, 70 % reads",
        "--runtime 1: measures for 1s",
        "random transfers of 8 KiB, 70 % reads, 2 clients with 2 operations in flight each, for 1s",
    ] {
        ran.says(says);
    }
    let resolved = std::fs::read_to_string(sandbox.bundle().join("resolved.toml")).unwrap();
    assert!(resolved.contains("queue_depth = 2") && resolved.contains("clients = 2"), "{resolved}");
    sandbox.run(&["run"]).expect(2).says("nothing to run");
    sandbox.run(&["run", "--path", &data, "--bs", "4x"]).expect(2).says("--bs 4x");
    sandbox.run(&["run", "--path", &data, "--size", "4k"]).expect(2).says("4KiB");
}

#[test]
fn one_vocabulary_describes_a_load_in_every_command() {
    let sandbox = Sandbox::new();
    let (data, other) = (text(&sandbox.data()), text(&sandbox.path("other")));
    std::fs::create_dir(&other).unwrap();
    let load = ["--size", "8KiB", "--reads", "0", "--depth", "2", "--clients", "2", "--for", "1s"];
    let interval = ["--set", "evidence.interval=50ms"];
    let small = [&["--file-size", "4MiB", "--set", "phases.warm_up=0s"][..], &interval].concat();
    let with = |command: &str, more: &[&str]| {
        sandbox.run(&[&[command, "--path", &data][..], &load, &small, more].concat())
    };
    let ran = with("run", &["--sync", "dsync", "--runs", "2", "--out", "twice"]);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    let [experiment] = &support::names(&sandbox.path("twice"))[..] else {
        panic!("one experiment")
    };
    let experiment = sandbox.path("twice").join(experiment);
    let runs = support::names(&experiment);
    let plan = |run: &String| std::fs::read_to_string(experiment.join(run).join("resolved.toml"));
    let plans: Vec<String> = runs.iter().filter_map(|run| plan(run).ok()).collect();
    assert!(
        plans.len() == 2 && plans.iter().all(|plan| plan.contains("kind = \"dsync\"")),
        "{plans:?}"
    );
    let every = ["--fdatasync", "8", "--dry-run"];
    for command in ["run", "sweep", "tune"] {
        with(command, &every).expect(0).says("4 MiB needed");
        let long = with(command, &["--dry-run", "--runtime", "60"]);
        assert_eq!(long.code, 2, "--for and --runtime: {}", long.stderr);
    }
    let sides = with("compare", &["--path", &other, "--sync", "fdatasync", "--dry-run"]).expect(0);
    sides.says("8 runs of 1 s");
    sides.says("run 8 of 8: ");
    // A plan describes its load, so `--size` is rejected. `--for` and `--runs` are accepted.
    let short = ["--set", "evidence.min_measure=1s", "--set", "workload.matrix.file_size=4MiB"];
    let plan = ["run", "oltp", "--path", &data, "--for", "20s", "--runs", "3", "--dry-run"];
    sandbox.run(&[&plan[..], &short].concat()).expect(0).says("(3 runs of 80 s)");
    let size = sandbox.run(&["run", "oltp", "--path", &data, "--size", "8KiB"]).expect(2);
    size.says("--set workload.matrix.sizes=8KiB");
    sandbox.run(&["run", "--path", &data, "--size", "4KiB,8KiB"]).expect(2).says("plimsoll sweep");
    with("sweep", &["--runs", "2"]).expect(2).says("--restart");
    with("tune", &["--runs", "2"]).expect(2).says("measures each load once");
}

#[test]
fn a_run_that_is_too_short_prints_the_line_that_allows_it() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    let mut arguments: Vec<String> =
        ["run", "oltp", "--path", &data, "--set", "workload.matrix.file_size=4MiB", "--set"]
            .map(str::to_owned)
            .to_vec();
    arguments.extend(["phases.warm_up=0s", "--for", "500ms"].map(str::to_owned));
    for _ in 0..2 {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let refused = sandbox.run(&words).expect(2);
        let line = refused.stderr.split("--set ").nth(1).expect("a --set line");
        let set = line.split_whitespace().next().unwrap().to_owned();
        arguments.extend(["--set".to_owned(), set]);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The run is too short for a PASS, and the report states how much time is missing. A slow disk
    // exceeds the limits.
    let ran = sandbox.run(&words);
    assert!([1, 3].contains(&ran.code), "{}\n{}", ran.code, ran.stdout);
    ran.says("a PASS requires at least 30 s");
}

#[test]
fn plans_are_listed_shown_and_made() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["plan", "list"]).expect(0);
    gallery().iter().for_each(|plan| listed.says(plan.name));
    let json = sandbox.run(&["plan", "list", "--json"]).expect(0).json();
    assert_eq!(json.as_array().unwrap().len(), gallery().len());
    sandbox.run(&["plan", "show", "oltp"]).expect(0).says("# Sources:");
    sandbox.run(&["plan", "show", "olpt"]).expect(2).says("did you mean oltp?");
    sandbox.run(&["plan", "show", "oltp.toml"]).expect(2).says("use `oltp`");
    let data = text(&sandbox.data());
    let made = ["plan", "new", "oltp", "--path", &data, "--out", "mine.toml"];
    let smaller = with_sets(&made, &["workload.matrix.file_size=1MiB", "phases.measure=10m"]);
    sandbox.run(&smaller).expect(0).says("plimsoll run mine.toml");
    let plan = std::fs::read_to_string(sandbox.path("mine.toml")).unwrap();
    assert!(plan.contains("# Needs: 17 MiB") && plan.contains("# Takes: 11 min"), "{plan}");
    assert!(plan.contains("# Sources:") && plan.contains(&data), "{plan}");
    sandbox.run(&["plan", "check", "mine.toml"]).expect(0);
    sandbox.run(&smaller).expect(2).says("already exists");
    sandbox.run(&["plan", "new"]).expect(2).says("plimsoll plan list");
}

#[test]
fn a_changed_field_that_is_wrong_is_told_as_in_a_plan() {
    let sandbox = Sandbox::new();
    let check = |set: &str| sandbox.run(&["plan", "check", "oltp", "--set", set]).expect(2);
    check("phases.measure=10").says("phases.measure");
    check("phases.mesure=10m").says("phases.mesure");
    check("phases.measure").says("write field=value");
    check("phases.measure=1m").says("evidence.min_measure");
}

#[test]
fn data_that_cannot_fit_is_refused_by_check_and_run_in_units() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    for command in ["check", "run"] {
        let mut arguments = vec!["plan", "check", "exchange-1000-heavy"];
        if command == "run" {
            arguments = vec!["run", "exchange-1000-heavy"];
        }
        let vast = ["--path", &data, "--set", "workload.mailbox.mailboxes=100000"];
        let ran = sandbox.run(&[&arguments[..], &vast[..]].concat()).expect(2);
        ran.says("free, but the plan's data needs 122.1 TiB");
        let all = format!("{}{}", ran.stdout, ran.stderr);
        let digits = all.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        assert!(digits < Some(9), "a bare number of bytes: {all}");
    }
    assert!(sandbox.left_in_data().is_empty());
}

#[test]
fn a_million_hours_are_refused_in_years() {
    let sandbox = Sandbox::new();
    let path = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let long = ["--set", "phases.measure=1000000h"];
    for command in ["run", "tune"] {
        let ran = sandbox.run(&[&[command, &path], &long[..]].concat()).expect(2);
        ran.says("years");
        ran.says("--yes");
    }
    let dry = [&["run", path.as_str()], &long[..], &["--yes", "--dry-run"]].concat();
    sandbox.run(&dry).expect(0).says("ends at 2");
}

#[test]
fn a_dry_run_lists_points_and_looks_at_paths_and_servers() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    let sweep = ["sweep", "--path", &data, "--sizes", "4KiB,8KiB", "--reads", "100", "--patterns"];
    let flags = ["random", "--file-size", "1MiB", "--measure", "1s", "--dry-run"];
    let ran = sandbox.run(&[&sweep[..], &flags[..]].concat()).expect(0);
    for says in
        ["point 1: ", "point 2: ", "1 MiB needed", "at the earliest", "exists and is writable"]
    {
        ran.says(says);
    }
    assert!(sandbox.left_in_data().is_empty() && sandbox.bundles().is_empty());
    let missing = ["run", "oltp", "--path", "/no/such", "--dry-run"];
    sandbox.run(&missing).expect(2).says("/no/such is not an existing directory");
    // A built-in plan uses paths that seldom exist on this machine.
    for command in ["run", "tune", "sweep"] {
        let ran = sandbox.run(&[command, "oltp"]).expect(2);
        ran.says("is not an existing directory");
        ran.says("--path DIR");
    }
    assert!(sandbox.bundles().is_empty());
    let bad = ["run", "vms-on-nfs", "--nfs", "server:/vms", "--dry-run"];
    sandbox.run(&bad).expect(2).says("use an export such as nfs://host/export");
    // No process listens on this port of the host.
    let port = free_port();
    let export = format!("nfs://127.0.0.1:{port}/vms");
    let ran = sandbox.run(&["run", "vms-on-nfs", "--nfs", &export, "--dry-run"]).expect(5);
    ran.says(&format!("127.0.0.1:{port}"));
    // A dry run mounts the export as the run does, and compares its free space with the required
    // space.
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let mut server = sandbox.start(&["model", "serve", "laptop-nvme", "--nfs", &address]);
    let export = format!("nfs://127.0.0.1/vms?nfsport={port}&mountport={port}");
    let small = ["--set", "workload.matrix.file_size=1MiB"];
    let dry = |more: &[&str]| {
        sandbox.run(&[&["run", "vms-on-nfs", "--nfs", &export, "--dry-run"], more].concat())
    };
    let began = std::time::Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        assert!(began.elapsed().as_secs() < 30, "the model's server did not start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let fits = dry(&small);
    let vast = dry(&["--set", "workload.matrix.file_size=100TiB"]);
    server.kill().unwrap();
    server.wait().unwrap();
    fits.expect(0).says("can be mounted, ");
    vast.expect(2).says("hint: reduce the data size");
}

#[test]
fn jobs_that_wait_for_each_other_become_plans_in_sequence() {
    let sandbox = Sandbox::new();
    let job = "[global]\ndirectory=${PLACE} ; where\nruntime=60\nsize=1m # \
               each\n[fill]\nrw=write\n[read]\nstonewall\nrw=randread\n";
    std::fs::write(sandbox.path("job.fio"), job).unwrap();
    let with = |arguments: &[&str]| {
        CommandOutput::from(
            sandbox.command(arguments).env("PLACE", sandbox.data()).output().unwrap(),
        )
    };
    sandbox.run(&["plan", "import", "job.fio"]).expect(2).says("PLACE is not set");
    let refused = with(&["plan", "import", "job.fio"]).expect(2);
    refused.says("waits for the jobs before it");
    refused.says("plimsoll run JOB");
    let ran = with(&["plan", "import", "job.fio", "--out", "stages"]).expect(0);
    ran.says("plimsoll run stages/job-1-fill.toml");
    ran.says("plimsoll run stages/job-2-read.toml");
    sandbox.run(&["plan", "check", "stages/job-2-read.toml"]).expect(0).says("read_percent = 100");
}

#[test]
fn the_stages_of_a_job_are_run_one_after_the_other_by_one_command() {
    let sandbox = Sandbox::new();
    let job = "[global]\ndirectory=/no/such\nruntime=1\nsize=1m\n[fill]\nrw=write\nbs=64k\n[read]\nstonewall\nrw=randread\n[check]\nrw=randread\nbs=8k\n";
    std::fs::write(sandbox.path("job.fio"), job).unwrap();
    sandbox.run(&["run", "job.fio"]).expect(2).says("/no/such is not an existing directory");
    let data = text(&sandbox.data());
    let here = with_sets(&["run", "job.fio", "--path", &data], &["phases.warm_up=0s"]);
    let dry = sandbox.run(&[&here[..], &["--dry-run"]].concat()).expect(0);
    for says in [
        "takes 2 s (2 stages, one after the other)",
        "at the earliest",
        "stage 1 of 2, 1-fill: 1 s",
        "stage 2 of 2, 2-read: 1 s",
        "1 MiB needed",
        "2 MiB needed",
        "exists and is writable",
    ] {
        dry.says(says);
    }
    assert!(sandbox.bundles().is_empty());
    // If the run would reject a stage, the dry run rejects it too. It is rejected before earlier
    // stages run.
    let wide = ["--set", "workload.matrix.clients=1000000"];
    let codes = [&["--dry-run"][..], &[]].map(|more| {
        let refused = sandbox.run(&[&here[..], &wide, more].concat());
        refused.says("memory");
        refused.code
    });
    assert!(codes[0] != 0 && codes[0] == codes[1], "{codes:?}");
    assert!(sandbox.bundles().is_empty());
    let ran = sandbox.run(&here);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    ran.says("2 stages ran one after the other.");
    let study = sandbox.bundle();
    let record = support::json(&study.join("experiment.json"));
    assert_eq!(record["kind"], "stages");
    let stages = record["result"]["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["1-fill", "2-read"]);
    for stage in stages {
        let bundle = study.join(stage["run_id"].as_str().unwrap());
        let evidence = support::json(&bundle.join("run.json"));
        assert_eq!(evidence["experiment"]["arm"], stage["name"]);
        assert_eq!(support::json(&bundle.join("verdict.json"))["verdict"], stage["verdict"]);
        assert!(stage["rate_per_s"].as_f64() > Some(0.0), "{stage}");
        sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
    }
    let page = std::fs::read_to_string(study.join("report.html")).unwrap();
    assert!(page.contains("2-read") && page.contains("created its own data"), "{page}");
    // `runs show` computes the same result from the bundles.
    let id = study.file_name().unwrap().to_str().unwrap();
    let again = sandbox.run(&["runs", "show", id, "--json"]).expect(0).json();
    assert_eq!(again, record["result"]);
    sandbox.run(&["report", id]).expect(0).says("1-fill");
    let csv = sandbox.run(&["report", id, "--format", "csv"]).expect(0).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("stage,verdict,rate_per_s,"), "{csv}");
    assert!(lines[2].starts_with("2-read,"), "{csv}");
    sandbox.run(&["verify", study.to_str().unwrap()]).expect(0);
    assert!(sandbox.left_in_data().is_empty());
    // A job whose sections all run together is a single run of the same command. Other commands
    // accept the job as a plan.
    let alone = "[a]\nrw=randread\nsize=1m\nruntime=60\n";
    std::fs::write(sandbox.path("alone.fio"), alone).unwrap();
    sandbox
        .run(&["plan", "check", "alone.fio", "--path", &data])
        .expect(0)
        .says("read_percent = 100");
    sandbox.run(&["tune", "alone.fio", "--path", &data, "--dry-run"]).expect(0).says("depth from");
    sandbox
        .run(&["plan", "check", "job.fio"])
        .expect(2)
        .says("one after another (plimsoll run JOB)");
}

#[test]
fn a_sweep_and_a_search_take_places_and_fields_beside_a_plan() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    let plan = "[target]\npath = \"/no/such\"\n[workload.matrix]\nsizes = [\"4KiB\", \
                \"8KiB\"]\nfile_size = \"1GiB\"\n";
    std::fs::write(sandbox.path("matrix.toml"), plan).unwrap();
    let sets = ["workload.matrix.file_size=1MiB", "phases.measure=10m", "phases.warm_up=0s"];
    let sweep = with_sets(&["sweep", "matrix.toml", "--path", &data, "--dry-run"], &sets);
    let ran = sandbox.run(&sweep).expect(0);
    for says in ["2 points of 10 min: 20 min", "1 MiB needed", &data] {
        ran.says(says);
    }
    // `--set` also changes a plan that was created from flags.
    let made = ["sweep", "--path", &data, "--sizes", "4KiB", "--file-size", "1MiB", "--dry-run"];
    let made = with_sets(&made, &["workload.matrix.reads=[50]", "evidence.min_measure=1s"]);
    sandbox.run(&made).expect(0).says("r50");
    let tune = ["tune", "oltp", "--path", &data, "--steps", "3", "--dry-run"];
    let ran = sandbox.run(&with_sets(&tune, &["workload.matrix.file_size=1MiB"])).expect(0);
    for says in ["3 steps of 31 min", "17 MiB needed", "exists and is writable"] {
        ran.says(says);
    }
    assert!(sandbox.left_in_data().is_empty() && sandbox.bundles().is_empty());
}

/// Runs a command on a separate terminal, and types these answers.
fn typed(sandbox: &Sandbox, arguments: &[&str], answers: &str) -> CommandOutput {
    use std::io::Write;
    let program = sandbox.command(arguments);
    let line: Vec<String> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(sandbox.root.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    let piped = std::process::Stdio::piped;
    let mut child = script.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(answers.as_bytes()).unwrap();
    drop(stdin);
    CommandOutput::from(child.wait_with_output().unwrap())
}

#[test]
fn a_plan_is_made_by_answers_on_a_terminal() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    // The answers are: a number that is not in the list, then a name; an invalid count; the path of
    // an existing file.
    std::fs::write(sandbox.path("taken.toml"), "").unwrap();
    let answers =
        format!("99\nexchange-1000-heavy\n{data}\n\nmany\n40\n\n\ntaken.toml\nmine.toml\n");
    let ran = typed(&sandbox, &["plan", "new"], &answers).expect(0);
    for says in [
        "99 is not one of these plans",
        "workload.mailbox.mailboxes",
        "taken.toml already exists",
        "plimsoll run mine.toml",
    ] {
        ran.says(says);
    }
    let made = sandbox.run(&["plan", "show", "mine.toml"]).expect(0);
    made.says("mailboxes = 40");
    made.says(&data);
    // The terminal closes before the last question: nothing is written.
    let ran = typed(&sandbox, &["plan", "new"], "oltp\n\u{4}").expect(2);
    ran.says("the questions were not answered");
    assert!(!sandbox.path("oltp.toml").exists());
}

#[test]
fn a_dry_run_prints_its_result_on_stdout() {
    let sandbox = Sandbox::new();
    let (data, other) = (text(&sandbox.data()), text(sandbox.root.path()));
    for line in [
        format!("run --path {data} --size 4KiB --file-size 1MiB --for 1s"),
        format!("sweep --path {data} --size 4KiB --file-size 1MiB --measure 1s"),
        format!("tune --path {data} --size 4KiB --file-size 1MiB --for 30s"),
        format!("compare --path {data} --path {other} --size 4KiB --file-size 1MiB --for 1s"),
    ] {
        let dry = [line.split(' ').collect::<Vec<_>>(), vec!["--dry-run", "-q"]].concat();
        let ran = sandbox.run(&dry).expect(0);
        assert!(ran.stdout.contains("takes ") && ran.stderr.is_empty(), "{ran:?}");
        let json = sandbox.run(&[&dry[..], &["--json"]].concat()).expect(0).json();
        let lines = json["dry_run"].as_array().unwrap();
        assert_eq!(lines.len(), ran.stdout.lines().count(), "{json}\n{}", ran.stdout);
    }
    // Even root cannot create files in a file system of the kernel.
    let load = ["run", "--size", "4KiB", "--file-size", "1MiB", "--dry-run", "--path", "/proc"];
    let ran = sandbox.run(&load).expect(2);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("takes "), "{ran:?}");
    ran.says("/proc is on a file system of the kernel");
    let limits = ["tune", "oltp", "--path", &data, "--min", "8", "--max", "4"];
    sandbox
        .run(&limits)
        .expect(2)
        .says("the smallest load (8) is higher than the largest load (4)");
}

#[test]
fn each_result_has_a_json_form() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    let json = |line: &str| -> serde_json::Value {
        let line = line.replace("DATA", &data);
        let words = [line.split(' ').collect::<Vec<_>>(), vec!["--json"]].concat();
        sandbox.run(&words).expect(0).json()
    };
    assert_eq!(json("plan show oltp --path DATA")["ok"], true);
    assert_eq!(json("plan new oltp --path DATA")["ok"], true);
    assert_eq!(json("plan new oltp --path DATA --out new.toml")["created"], "new.toml");
    assert_eq!(json("ledger key a.key")["public_key"], "a.key.pub");
    let model = "run --model single-hdd --size 4KiB --file-size 1MiB --for 1s -q --json";
    sandbox.run(&model.split(' ').collect::<Vec<_>>()).json();
    let signed = json("ledger sign --key a.key --out signed");
    assert_eq!(signed["lines"], 2, "{signed}");
    assert!(json("runs rm last")["removed"].as_str().unwrap().contains("/runs/"));
    let help = sandbox.run(&["completions", "--help"]).expect(0).stdout;
    assert!(!help.contains("--json"), "{help}");
}

#[test]
fn a_wrong_name_is_wrong_usage_and_has_a_hint() {
    let sandbox = Sandbox::new();
    let data = text(&sandbox.data());
    std::fs::write(sandbox.path("here"), "").unwrap();
    std::fs::write(sandbox.path("experiment.toml"), "").unwrap();
    let model = "run --model single-hdd --size 4KiB --file-size 1MiB --for 1s -q --json";
    sandbox.run(&model.split(' ').collect::<Vec<_>>()).json();
    sandbox.run(&["ledger", "key", "a.key"]).expect(0);
    sandbox.run(&["ledger", "sign", "--key", "a.key"]).expect(0);
    for line in [
        "runs export last here",
        "runs import nosuch",
        "ledger key here",
        "ledger stamp nosuch",
        "ledger check --statement nosuch",
        "experiment show e1 --export .",
        "experiment show e1 --export here",
        "durability --path DATA --cut true --restore true --witness here",
        "plan new oltp --path DATA --out nosuch/x.toml",
        "verify DATA",
    ] {
        let line = line.replace("DATA", if line.starts_with("dur") { "/dev/shm" } else { &data });
        let ran = sandbox.run(&line.split(' ').collect::<Vec<_>>()).expect(2);
        assert!(ran.stderr.contains("hint: "), "{line}: {}", ran.stderr);
        assert!(!ran.stderr.contains("correct the plan"), "{line}: {}", ran.stderr);
    }
    std::fs::write(sandbox.path("t.csv"), "128166372003061629,h,0,Read,0,4096,1\n").unwrap();
    sandbox.run(&["run", "--trace", "t.csv"]).expect(2).says("no target was given");
}
