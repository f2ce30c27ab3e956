//! `plimsoll durability` on a disk that loses writes when its power is cut. A disk that preserves
//! its writes passes. Every disk that loses writes fails. A cut without an effect proves nothing.

use std::path::PathBuf;
use std::process::Stdio;

use plimsoll_lossy_disk::disk::Behaviour;
use plimsoll_lossy_disk::mount::LossyMount;

use crate::support::{CommandOutput, Sandbox, json, names, wait_until};

struct Rig {
    // This field is first, because the disk must be unmounted before the sandbox is removed.
    disk: LossyMount,
    sandbox: Sandbox,
}

impl Rig {
    fn new(behaviour: Behaviour, seed: u64) -> Self {
        let sandbox = Sandbox::new();
        let disk = LossyMount::new(&sandbox.data(), behaviour, seed).unwrap();
        Self { disk, sandbox }
    }

    fn control(&self, word: &str) -> String {
        format!("echo {word} > {}", self.sandbox.data().join("control").display())
    }

    fn witness(&self) -> PathBuf {
        self.sandbox.path("witness")
    }

    /// Returns the arguments of a short test, without the kind of the cut.
    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let (path, witness) = (self.sandbox.data(), self.witness());
        let own = ["durability", "--path", path.to_str().unwrap(), "--witness"];
        let small = ["--size", "1MiB", "--threads", "2", "--load", "200ms", "--json", "-q"];
        let witness = [witness.to_str().unwrap()];
        let words = own.iter().chain(&witness).chain(&small).chain(more);
        words.map(|word| (*word).to_owned()).collect()
    }

    fn run(&self, more: &[&str]) -> CommandOutput {
        let all = self.arguments(more);
        self.sandbox.run(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn cuts(&self, more: &[&str]) -> CommandOutput {
        let (cut, restore) = (self.control("cut"), self.control("restore"));
        let own = ["--cut", &cut, "--restore", &restore, "--kind", "simulated"];
        self.run(&own.iter().chain(more).copied().collect::<Vec<_>>())
    }
}

#[test]
fn an_honest_disk_passes_with_a_bound_that_is_not_zero() {
    let rig = Rig::new(Behaviour::Honest, 1);
    let found = rig.cuts(&["--cuts", "3"]).expect(0).json();
    assert_eq!((&found["verdict"], &found["cuts"]), (&"PASS".into(), &3.into()), "{found}");
    assert!((found["loss_probability_max"].as_f64().unwrap() - 0.6316).abs() < 1e-3, "{found}");
    assert!(found["acknowledged"].as_u64().unwrap() > 100, "{found}");
    let cuts = found["evidence"]["cuts"].as_array().unwrap();
    assert!(cuts.iter().all(|cut| cut["failed"].as_u64() > Some(0)), "{found}");
    assert_eq!(rig.sandbox.left_in_data(), ["control"], "the data is removed");
    assert_eq!(json(&rig.witness().join("durability.json")), found["evidence"]);
    // Each of these methods makes a write durable.
    for sync in ["fsync", "dsync"] {
        std::fs::remove_dir_all(rig.witness()).unwrap();
        rig.cuts(&["--cuts", "1", "--sync", sync]).expect(0);
    }
    // The verdict on a single cut is checked in words. The evidence comes from the witness of the
    // previous test.
    let path = rig.witness().join("durability.json");
    let evidence: plimsoll_evidence::durability::DurabilityTest =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let verdict = plimsoll_judge::durability::judge(&evidence);
    let result =
        plimsoll_report::durability::DurabilityResult { verdict: &verdict, evidence: &evidence };
    let text = result.text();
    for says in ["PASS\n", "at most 95.00 %", "dsync", "simulated"] {
        assert!(text.contains(says), "{says:?} is not in:\n{text}");
    }
}

#[test]
fn each_liar_is_caught() {
    for (seed, lie) in (1..).zip(Behaviour::LIES) {
        let rig = Rig::new(lie, seed);
        // The damaged block may be one whose write was not acknowledged yet.
        let ran = rig.cuts(&["--cuts", "4"]);
        assert!(rig.disk.lies() > 0, "{lie:?}");
        let found = ran.expect(4).json();
        assert_eq!(found["verdict"], "FAIL", "{lie:?}: {found}");
        assert!(found["cuts_with_losses"].as_u64() > Some(0), "{lie:?}: {found}");
    }
}

#[test]
fn a_cut_that_does_not_cut_shows_nothing() {
    let rig = Rig::new(Behaviour::DropCache, 1);
    let found = rig.run(&["--cut", "true", "--cuts", "2"]).expect(3).json();
    assert_eq!((&found["verdict"], &found["cuts"]), (&"INCONCLUSIVE".into(), &0.into()));
    let says = found["reasons"].to_string();
    assert!(says.contains("still acknowledged"), "{says}");
}

#[test]
fn failures_of_the_environment_accuse_nobody() {
    let rig = Rig::new(Behaviour::Honest, 1);
    let cut = rig.control("cut");
    // The target does not become available again.
    let found = rig.run(&["--cut", &cut, "--timeout", "1s", "--cuts", "2"]).expect(5).json();
    assert_eq!(found["verdict"], "INCONCLUSIVE", "{found}");
    assert!(found["evidence"]["cuts"][0]["not_restored"].is_string(), "{found}");
    // A cut command that fails, a witness that was used before, and a witness on the target are
    // rejected.
    let rig = Rig::new(Behaviour::Honest, 1);
    // If the target does not exist, no witness may be created.
    let missing = rig.sandbox.path("missing");
    let witness = rig.witness();
    let elsewhere = ["durability", "--path", missing.to_str().unwrap(), "--witness"];
    let elsewhere = [&elsewhere[..], &[witness.to_str().unwrap(), "--cut", "true"]].concat();
    rig.sandbox.run(&elsewhere).expect(2).says("No such file or directory");
    assert!(!witness.exists());
    let failed = rig.run(&["--cut", "exit 7", "--cuts", "1"]).expect(5);
    failed.says("it exited with code 7");
    failed.says("the same settings and --resume");
    rig.run(&["--cut", "true", "--cuts", "1"])
        .expect(2)
        .says("already contains the witness of another test");
    let inside = rig.sandbox.data().join("w");
    let inside = ["--cut", "true", "--witness", inside.to_str().unwrap()];
    let path = rig.sandbox.data();
    let own = ["durability", "--path", path.to_str().unwrap()];
    let all: Vec<&str> = own.iter().chain(&inside).copied().collect();
    rig.sandbox.run(&all).expect(2).says("on the file system under test");
    rig.cuts(&["--cuts", "0"]).expect(2);
}

#[test]
fn a_lost_process_is_resumed_and_its_acknowledged_writes_are_checked() {
    let rig = Rig::new(Behaviour::Honest, 1);
    let arguments = rig.arguments(&["--cut-by-hand", "--cuts", "1"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = rig
        .sandbox
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let acks = rig.witness().join("cut-00001.acks");
    wait_until("acknowledgements", || std::fs::metadata(&acks).is_ok_and(|m| m.len() > 3200));
    child.kill().unwrap();
    child.wait().unwrap();
    // Without input from an operator, the test ends at the next cut by hand.
    let resumed: Vec<&str> = arguments.iter().copied().chain(["--resume"]).collect();
    let found = rig.sandbox.run(&resumed).expect(130).json();
    let cut = &found["evidence"]["cuts"][0];
    assert_eq!((&cut["resumed"], &cut["same_boot"]), (&true.into(), &true.into()), "{found}");
    assert!(cut["acknowledged"].as_u64().unwrap() >= 100, "{found}");
    let blocks = &cut["check"]["blocks"];
    assert_eq!(blocks["good"].as_u64().unwrap() + blocks["in_flight"].as_u64().unwrap(), 256);
    // The host has not restarted, so it was not cut off.
    assert_eq!((&found["verdict"], &found["cuts"]), (&"INCONCLUSIVE".into(), &0.into()));
    assert_eq!(names(&rig.sandbox.data()), ["control"]);
}
