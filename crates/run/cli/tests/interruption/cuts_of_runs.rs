//! `[durability]` in a plan: `plimsoll run` cuts the target off after the load, and a lost write
//! fails the run. `plimsoll durability PLAN` uses the same section.

use std::path::Path;

use plimsoll_lossy_disk::disk::Behaviour;
use plimsoll_lossy_disk::mount::LossyMount;
use serde_json::Value;

use crate::support::{LoopFs, Sandbox, SmallPlan, json, names, wait_until};

struct Rig {
    // This field is first, because the disk must be unmounted before the sandbox is removed.
    _disk: LossyMount,
    sandbox: Sandbox,
}

impl Rig {
    fn new(behaviour: Behaviour) -> Self {
        let sandbox = Sandbox::new();
        let disk = LossyMount::new(&sandbox.data(), behaviour, 1).unwrap();
        Self { _disk: disk, sandbox }
    }

    /// Writes a plan with a small load and this `[durability]` section. Returns the path of the
    /// plan.
    fn plan(&self, section: &str) -> String {
        let mut plan = SmallPlan::on(&self.sandbox.data());
        plan.measure = "1s".into();
        let small = "size = \"1MiB\"\nthreads = 2\nload = \"100ms\"\nkind = \"simulated\"";
        plan.more = format!("[durability]\n{small}\n{section}");
        self.sandbox.plan(&plan)
    }

    fn command(&self, word: &str) -> String {
        let control = self.sandbox.data().join("control");
        format!("[\"sh\", \"-c\", \"echo {word} > '{}'\"]", control.display())
    }

    fn cuts(&self, cuts: u32) -> String {
        let [cut, restore] = ["cut", "restore"].map(|word| self.command(word));
        format!("cut = {cut}\nrestore = {restore}\ncuts = {cuts}")
    }

    /// Waits until a run prompts its operator. Returns the run's id.
    fn wait_for_prompt(&self) -> String {
        let prompts = self.sandbox.path("state/plimsoll/prompts");
        let prompt = || names(&prompts).into_iter().find(|name| !name.starts_with('.'));
        wait_until("the prompt", || prompts.is_dir() && prompt().is_some());
        prompt().unwrap()
    }

    fn witnesses(&self) -> Vec<String> {
        names(&self.sandbox.path("state/plimsoll/durability"))
    }
}

fn check(bundle: &Path) -> Value {
    let verdict = json(&bundle.join("verdict.json"));
    let checks = verdict["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == "cuts_with_losses").unwrap().clone()
}

#[test]
fn a_run_cuts_an_honest_disk_off_and_leaves_nothing() {
    let rig = Rig::new(Behaviour::Honest);
    let plan = rig.plan(&rig.cuts(2));
    let ran = rig.sandbox.run(&["run", &plan]);
    let bundle = rig.sandbox.bundle();
    let found = check(&bundle);
    assert_eq!(found["ok"], true, "{found}\n{}", ran.stderr);
    assert!(
        found["note"].as_str().unwrap().starts_with("of 2 cuts of the target (simulated)"),
        "{found}"
    );
    let test = &json(&bundle.join("run.json"))["durability"];
    assert_eq!(test["cuts"].as_array().unwrap().len(), 2, "{test}");
    ran.says("interruption 1 of 2: ");
    assert!(!ran.stderr.contains("cannot remove"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("No acknowledged write was missing after 2 cuts"),
        "{}",
        ran.stdout
    );
    assert_eq!(rig.sandbox.left_in_data(), ["control"]);
    assert!(rig.witnesses().is_empty(), "{:?}", rig.witnesses());
    rig.sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
    // `plimsoll durability` uses the section too; its flags override the section.
    let witness = rig.sandbox.path("witness");
    let own =
        ["durability", &plan, "--witness", witness.to_str().unwrap(), "--cuts", "1", "--json"];
    let found = rig.sandbox.run(&own).expect(0).json();
    assert_eq!(found["evidence"]["settings"]["kind"], "simulated", "{found}");
    assert_eq!(found["cuts"], 1, "{found}");
}

#[test]
fn a_loss_fails_the_run_and_keeps_the_witness() {
    let rig = Rig::new(Behaviour::DropCache);
    let plan = rig.plan(&rig.cuts(2));
    let ran = rig.sandbox.run(&["run", &plan]).expect(4);
    let verdict = json(&rig.sandbox.bundle().join("verdict.json"));
    // The disk is in this host's memory. This refutes the figures of the load, but not the loss of
    // writes.
    assert!(["FAIL", "INVALID"].contains(&verdict["verdict"].as_str().unwrap()), "{verdict}");
    assert!(verdict["reason"].as_str().unwrap().contains("cuts with losses"), "{verdict}");
    assert_eq!(rig.witnesses().len(), 1);
    ran.says("the witness is in");
}

#[test]
fn a_failed_command_keeps_the_evidence_and_accuses_nobody() {
    let rig = Rig::new(Behaviour::Honest);
    let plan = rig.plan("cut = [\"false\"]\ncuts = 1");
    rig.sandbox.run(&["run", &plan]).expect(5);
    let bundle = rig.sandbox.bundle();
    let found = check(&bundle);
    assert_eq!((&found["ok"], &found["measured_count"]), (&Value::Null, &Value::Null), "{found}");
    let failure = &json(&bundle.join("run.json"))["durability"]["failure"];
    assert!(failure.as_str().unwrap().contains("it exited with code 1"), "{failure}");
    // The message contains the path of the test's data, which `clean` can remove.
    rig.sandbox.run(&["clean", rig.sandbox.data().to_str().unwrap()]).expect(0);
    assert_eq!(rig.sandbox.left_in_data(), ["control"]);
    // A witness on the target is rejected before the load.
    let inside = rig.sandbox.data().join("w");
    let plan = rig.plan(&format!("witness = {:?}\n{}", inside.display().to_string(), rig.cuts(1)));
    rig.sandbox.run(&["run", &plan]).expect(2).says("on the file system under test");
    assert_eq!(rig.sandbox.bundles().len(), 1);
}

#[test]
fn an_operator_can_make_the_cut_and_answer_with_mark() {
    let rig = Rig::new(Behaviour::Honest);
    let plan = rig.plan("cuts = 1");
    let child = rig.sandbox.start(&["run", &plan, "--json"]);
    let run_id = rig.wait_for_prompt();
    for word in ["cut", "restore"] {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::write(rig.sandbox.data().join("control"), word).unwrap();
    }
    rig.sandbox.run(&["mark", &run_id]).expect(0);
    let ran = crate::support::CommandOutput::from(child.wait_with_output().unwrap());
    let found = check(&rig.sandbox.bundle());
    assert_eq!(found["ok"], true, "{found}\n{}", ran.stderr);
}

#[test]
fn a_phase_of_cuts_belongs_to_one_run_that_the_operator_starts() {
    let rig = Rig::new(Behaviour::Honest);
    let plan = rig.plan(&rig.cuts(1));
    rig.sandbox
        .run(&["tune", &plan, "--set", "phases.measure=3s"])
        .expect(2)
        .says("can only be run once");
    let hosts = format!("target.path={:?}", rig.sandbox.data().join("{host}"));
    rig.sandbox
        .run(&["run", &plan, "--fleet", "local:2", "--set", &hosts])
        .expect(2)
        .says("cannot contain a durability test");
    assert_eq!(rig.sandbox.left_in_data(), ["control"]);
}

#[test]
fn a_run_that_is_lost_during_its_cuts_is_continued_by_durability() {
    let rig = Rig::new(Behaviour::Honest);
    let plan = rig.plan("cuts = 1");
    let mut child = rig.sandbox.start(&["run", &plan]);
    let run_id = rig.wait_for_prompt();
    let witness = rig.sandbox.path("state/plimsoll/durability").join(&run_id);
    let acks = witness.join("cut-00001.acks");
    wait_until("acknowledgements", || std::fs::metadata(&acks).is_ok_and(|m| m.len() > 3200));
    child.kill().unwrap();
    child.wait().unwrap();
    // The figures of the load exist, but are not sealed.
    let files = names(&rig.sandbox.bundle());
    assert!(files.contains(&"latency.hlog".to_owned()), "{files:?}");
    assert!(!files.contains(&"SHA256SUMS".to_owned()), "{files:?}");
    // Without input from an operator, the test ends at the next cut by hand.
    let witness = witness.to_str().unwrap();
    let own = ["durability", &plan, "--witness", witness, "--cut-by-hand", "--resume", "--json"];
    let found = rig.sandbox.run(&own).expect(130).json();
    let cut = &found["evidence"]["cuts"][0];
    assert_eq!(cut["resumed"], true, "{found}");
    assert!(cut["acknowledged"].as_u64() >= Some(100), "{found}");
    assert_eq!(rig.sandbox.left_in_data(), ["control"]);
}

#[test]
fn a_dry_run_counts_and_checks_the_durability_test() {
    let sandbox = Sandbox::new();
    // The default witness must be on another file system.
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 256, "noatime");
    let dry = |section: &str| {
        let mut plan = SmallPlan::on(&fs.mount);
        plan.more = format!("[durability]\nkind = \"simulated\"\n{section}");
        sandbox.run(&["run", &sandbox.plan(&plan), "--dry-run"])
    };
    let ran = dry("cuts = 60\nload = \"10s\"\nsize = \"2MiB\"").expect(0);
    ran.says("takes 10 min");
    ran.says("60 loads of the durability test, with a mean duration of 10 s");
    ran.says("durability test: ");
    ran.says("2 MiB needed");
    dry("size = \"1GiB\"").expect(2).says("the plan's data needs 1 GiB");
    let inside = format!("{:?}", fs.mount.join("w").display().to_string());
    dry(&format!("witness = {inside}")).expect(2).says("on the file system under test");
    dry("witness = \"/proc/none/w\"").expect(2).says("its parent directory does not exist");
}

#[test]
fn a_durability_test_that_does_not_fit_writes_nothing() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 64, "noatime");
    let before = names(&fs.mount);
    let (path, witness) = (fs.mount.to_str().unwrap(), sandbox.path("witness"));
    let own = ["durability", "--path", path, "--witness", witness.to_str().unwrap()];
    let large = ["--size", "1GiB", "--cut", "true", "--cuts", "1"];
    sandbox.run(&[&own[..], &large[..]].concat()).expect(2).says("free, but");
    assert_eq!(names(&fs.mount), before);
    assert!(!witness.exists());
}
