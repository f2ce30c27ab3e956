//! Every run checks content, even if its plan does not require a check of all data. If other
//! software overwrites data during a run, the run ends as corrupt (exit code 4).

use std::path::{Path, PathBuf};

use crate::support::{self, CommandOutput, Sandbox, SmallPlan, json};
use serde_json::Value;

/// A `[workload.matrix]` plan on 4 MiB without a check of all data. A run with so little data
/// samples 64 blocks.
fn matrix(sandbox: &Sandbox, workload: &str, phases: &str) -> String {
    let text = format!(
        "version = 1\nname = \"small\"\n[target]\npath = {:?}\n[workload.matrix]\nsizes = \
         \"4KiB\"\nfile_size = \"4MiB\"\n{workload}\n[phases]\nwarm_up = \"200ms\"\nmeasure = \
         \"3s\"\n{phases}\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n",
        sandbox.data().display().to_string()
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Returns the files in `directory` that have at least 1 MiB.
fn large_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(large_files(&path));
        } else if entry.metadata().unwrap().len() >= 1 << 20 {
            found.push(path);
        }
    }
    found
}

/// Bytes that no run writes as content (Knuth's MMIX): one MiB that is repeated, because generating
/// every byte can take longer than the run on a busy host.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 99u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let piece: Vec<u8> = (0..1 << 20).map(|_| next()).collect();
    piece.into_iter().cycle().take(bytes).collect()
}

/// Runs a plan. One second after the load begins, overwrites the first file whose name `spoiled`
/// accepts.
fn run_and_spoil(sandbox: &Sandbox, plan: &str, spoiled: impl Fn(&str) -> bool) -> CommandOutput {
    let child = sandbox.start(&["run", plan, "--json", "-q"]);
    support::wait_until("the load", || {
        let below = std::fs::read_dir(sandbox.data().join("plimsoll-small"));
        let mut names = below.into_iter().flatten().flatten();
        names.any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = || std::fs::read_to_string(entry.path()).unwrap_or_default();
            name.ends_with(".json") && text().contains("in-use")
        })
    });
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let mut files = large_files(&sandbox.data()).into_iter();
    let path = files.find(|path| spoiled(&path.file_name().unwrap().to_string_lossy())).unwrap();
    let made = sandbox.path("noise");
    std::fs::write(&made, noise(path.metadata().unwrap().len() as usize)).unwrap();
    // `dd` uses direct I/O, as the run does. Otherwise the page cache could mix its data with the
    // data of the run.
    let (from, to) = (format!("if={}", made.display()), format!("of={}", path.display()));
    support::tool("dd", &[&from, &to, "bs=1M", "oflag=direct", "conv=notrunc"]);
    CommandOutput::from(child.wait_with_output().unwrap())
}

#[track_caller]
fn is_corrupt(sandbox: &Sandbox, ran: CommandOutput) -> Value {
    let verdict = ran.expect(4).json();
    assert_eq!(verdict["verdict"], "INVALID", "{verdict}");
    assert_eq!(support::found(&verdict, "check-failed"), "fail");
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "corruption", "{}", run["end"]);
    assert!(run["checks"]["errors"].as_u64().unwrap() > 0, "{}", run["checks"]);
    assert_eq!(run["checks"]["damage"][0]["kind"], "corrupt", "{}", run["checks"]);
    run
}

#[test]
fn a_mix_on_files_that_are_overwritten_with_noise_is_corrupt() {
    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "reads = 70\nqueue_depth = 4", "verify = false");
    let ran = run_and_spoil(&sandbox, &plan, |_| true);
    is_corrupt(&sandbox, ran);
}

/// Buffered reads during writes to the same blocks are not reported as damage: the kernel may copy
/// a page for a read while it copies a write into that page.
#[test]
fn buffered_reads_beside_writes_of_the_same_blocks_are_no_damage() {
    let sandbox = Sandbox::new();
    let hot = "reads = 50\nclients = 16\ndirect = \"off\"\nworking_set = \"128KiB\"";
    let ran = sandbox.run(&["run", &matrix(&sandbox, hot, "verify = false"), "-q", "--json"]);
    assert_eq!(support::found(&ran.json(), "check-failed"), "warn", "{}", ran.stdout);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "completed", "{}", run["end"]);
    assert_eq!(run["checks"]["errors"], 0, "{}", run["checks"]);
    assert!(run["checks"]["sampled"]["reads"].as_u64() > Some(1_000), "{}", run["checks"]);
}

#[test]
fn writes_alone_are_read_back() {
    let sandbox = Sandbox::new();
    // The load has so few writes that it does not rewrite most of the overwritten blocks.
    let workload = "reads = 0\narrival = \"constant\"\nrate = 200";
    let ran = run_and_spoil(&sandbox, &matrix(&sandbox, workload, ""), |_| true);
    let run = is_corrupt(&sandbox, ran);
    assert!(run["checks"]["sampled"]["writes_read_back"].as_u64().unwrap() > 0, "{run}");
}

#[test]
fn a_mail_store_that_is_overwritten_with_noise_is_corrupt() {
    let sandbox = Sandbox::new();
    // The run ends at the first damaged page. The 30 s only ensure that a busy host has enough time
    // to reach it.
    let (phases, measure) = ("verify = false".into(), "30s".into());
    let plan = SmallPlan { phases, measure, ..SmallPlan::on(&sandbox.data()) };
    let plan = sandbox.plan(&plan);
    let ran = run_and_spoil(&sandbox, &plan, |name| name.ends_with(".edb"));
    is_corrupt(&sandbox, ran);
}

#[test]
fn what_was_checked_of_a_whole_run_is_told() {
    for (workload, reads, writes) in [
        ("reads = 60\nqueue_depth = 8\nclients = 2", true, true),
        ("reads = 100\npatterns = \"sequential\"", true, false),
        ("reads = 0\nsync = \"fdatasync\"\nsync_every = 4", false, true),
        // The load writes blocks again while earlier writes to them are in flight.
        ("reads = 50\nqueue_depth = 32\nworking_set = \"16KiB\"", true, true),
    ] {
        let sandbox = Sandbox::new();
        let plan = matrix(&sandbox, workload, "");
        let plan = std::fs::read_to_string(&plan).unwrap().replace("\"3s\"", "\"1s\"");
        std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
        let ran = sandbox.run(&["run", "plan.toml", "--json", "-q"]);
        assert!([0, 3].contains(&ran.code), "{workload}: {}{}", ran.stdout, ran.stderr);
        let run = json(&sandbox.bundle().join("run.json"));
        let (checks, sampled) = (&run["checks"], &run["checks"]["sampled"]);
        assert_eq!((checks["errors"].as_u64(), &checks["pages_checked"]), (Some(0), &Value::Null));
        let count = |what: &str| sampled[what].as_u64().unwrap();
        assert_eq!(count("reads") > 0, reads, "{workload}: {checks}");
        if !workload.contains("working_set") {
            assert_eq!(count("blocks") > 0, reads, "{workload}: {checks}");
            assert_eq!(count("blocks_read_back") > 0, writes, "{workload}: {checks}");
        }
        let verdict = ran.json();
        let findings = verdict["findings"].as_array().unwrap();
        let reported = findings.iter().find(|finding| finding["rule"] == "check-failed").unwrap();
        assert_eq!(reported["outcome"], "warn");
        if !workload.contains("working_set") {
            let says = reported["says"].as_str().unwrap();
            assert!(
                says.starts_with("only a sample of the data was checked, and it is intact"),
                "{reported}"
            );
        }
    }
}
