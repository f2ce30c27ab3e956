//! Compares the observations of runs on a loop device with known facts. Needs root.

use crate::support::{self, LoopFs, Sandbox, SmallPlan, json};
use serde_json::Value;

/// Runs a plan on an ext4 file system of the test. Returns `run.json`, `observed.json` and the
/// verdict.
fn run(workload: &str) -> (Value, Value, Value) {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 128, "defaults");
    let text = format!(
        "version = 1\nname = \"known\"\n[requirement]\nclaims = [\"media-read\"]\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"32MiB\"\nqueue_depth = 8\ndirect = \
         \"required\"\n{workload}\n[phases]\nwarm_up = \"300ms\"\nmeasure = \
         \"2s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n",
        fs.mount.display().to_string()
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    let verdict = sandbox.run(&["run", "plan.toml", "--json", "-q"]).json();
    let bundle = sandbox.bundle();
    (json(&bundle.join("run.json")), json(&bundle.join("observed.json")), verdict)
}

#[track_caller]
fn close(measured: f64, truth: f64, share: f64) {
    assert!((measured / truth - 1.0).abs() <= share, "{measured} where {truth} is true");
}

#[test]
fn device_bytes_working_set_and_content_are_what_they_are() {
    // One pass accesses each block of the 8 MiB once.
    let workload = "patterns = \"permutation\"\nworking_set = \"8MiB\"\ncompressibility = 2.0";
    let (run, observed, verdict) = run(workload);
    let read = run["classes"][0]["size_bytes"].as_f64().unwrap();
    assert!(read >= f64::from(8 << 20), "a pass is the least that this needs: {read}");
    let devices = observed["devices"].as_array().unwrap();
    let top = devices.iter().find(|device| device["top"] == true).unwrap();
    // The counters are read some milliseconds before or after the measurement starts and ends, and
    // later if other processes use the CPUs. The tolerance of 5 % is 100 ms of 2 s.
    close(top["read_bytes"].as_f64().unwrap(), read, 0.05);
    let profile = &observed["workload"];
    close(profile["working_set_read_bytes"].as_f64().unwrap(), f64::from(8 << 20), 0.02);
    close(profile["compressed_share"].as_f64().unwrap(), 0.5, 0.05);
    assert_eq!(profile["duplicate_share"].as_f64(), Some(0.0));
    assert!(profile["read_sequential_share"].as_f64().unwrap() < 0.05);
    let extents = &observed["extents"];
    assert_eq!(
        (extents["hole_bytes"].as_u64(), extents["unwritten_bytes"].as_u64()),
        (Some(0), Some(0))
    );
    assert_eq!(support::failed_rules(&verdict), Vec::<&str>::new(), "{verdict}");
}

#[test]
fn an_empty_file_is_caught_from_its_extents() {
    let (_, observed, verdict) = run("layout = \"sparse\"\nstamps = false");
    assert_eq!(observed["extents"]["hole_bytes"].as_u64(), Some(32 << 20));
    assert_eq!(verdict["verdict"], "INVALID");
    assert_eq!(support::failed_rules(&verdict)[..2], ["holes-read", "zero-data"]);
}

#[test]
fn space_that_was_allocated_and_never_written_is_caught_too() {
    let (_, observed, verdict) = run("layout = \"allocated\"\nstamps = false");
    assert_eq!(observed["extents"]["unwritten_bytes"].as_u64(), Some(32 << 20));
    assert_eq!(
        (verdict["verdict"].as_str(), support::failed_rules(&verdict)[0]),
        (Some("INVALID"), "holes-read")
    );
}

#[test]
fn what_a_mail_store_really_did_is_counted_too() {
    let sandbox = Sandbox::new();
    sandbox.run(&["run", &sandbox.plan(&SmallPlan::on(&sandbox.data())), "-q"]);
    let bundle = sandbox.bundle();
    let (run, observed) = (json(&bundle.join("run.json")), json(&bundle.join("observed.json")));
    let profile = &observed["workload"];
    let classes = run["classes"].as_array().unwrap().iter();
    let reads = classes.filter(|c| c["group"] == "transactional" && c["is_read"] == true);
    let completed: u64 = reads.map(|class| class["count"].as_u64().unwrap()).sum();
    // Operations are counted both when they are issued and when they complete. The difference is
    // the number of operations in flight at the start or end.
    let issued = profile["reads"].as_u64().unwrap();
    assert!(issued.abs_diff(completed) <= 256, "{issued} issued, {completed} completed");
    let bytes = |instance: &Value| instance["allocated_bytes"].as_u64().unwrap();
    let allocated: u64 = run["instances"].as_array().unwrap().iter().map(bytes).sum();
    let working_set = profile["working_set_read_bytes"].as_u64().unwrap();
    assert!((32 << 10..=allocated).contains(&working_set), "{working_set} of {allocated}");
    assert!(profile["read_sequential_share"].as_f64().unwrap() < 0.5, "{profile}");
    assert!(profile["log_sequential_share"].is_number(), "{profile}");
}
