//! Evidence on a full disk. A run reserves space for its evidence at the start. If the disk is full
//! anyway, the run writes the evidence to another directory. A ledger line is written completely or
//! not at all.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{CommandOutput, Sandbox, SmallPlan, names, tool, wait_until};
use plimsoll_evidence::ledger::{Ledger, Start};

/// A tmpfs that is unmounted when this value is dropped.
struct Small(PathBuf);

impl Small {
    fn new(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        tool(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size}"), "none", at.to_str().unwrap()],
        );
        Self(at.to_path_buf())
    }

    /// Fills the file system to the last byte; returns the file that fills it.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write(&[7; 4096]).is_ok_and(|written| written > 0) {}
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

fn ended(child: std::process::Child) -> CommandOutput {
    CommandOutput::from(child.wait_with_output().unwrap())
}

/// Runs the plan with its bundle on a small file system, and calls `harm` during the measurement.
fn run_and_harm(sandbox: &Sandbox, small: &Small, harm: impl Fn(&Path)) -> CommandOutput {
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let mut child = sandbox.start(&["run", &plan, "-q", "--out", small.0.to_str().unwrap()]);
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    wait_until("the load", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    let bundle = names(&small.0).into_iter().next().expect("the bundle is begun");
    harm(&small.0.join(bundle));
    small.fill();
    ended(child)
}

#[test]
fn a_disk_that_fills_up_while_it_runs_does_not_cost_the_bundle() {
    let sandbox = Sandbox::new();
    let small = Small::new(&sandbox.path("out"), "16m");
    let ran = run_and_harm(&sandbox, &small, |_| {});
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let bundle = small.0.join(names(&small.0).into_iter().find(|name| name != "ballast").unwrap());
    sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
    assert!(!bundle.join(".reserve").exists());
}

#[test]
fn a_bundle_that_does_not_fit_goes_elsewhere_and_says_where() {
    let sandbox = Sandbox::new();
    let small = Small::new(&sandbox.path("out"), "16m");
    // The test removes the reserved space and then fills the file system.
    let ran = run_and_harm(&sandbox, &small, |bundle| {
        let held = std::fs::File::options().write(true).open(bundle.join(".reserve")).unwrap();
        held.set_len(0).unwrap();
    });
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let bundle = sandbox.bundle();
    ran.says("No space left on device");
    ran.says(&format!("the bundle is in {} instead", bundle.display()));
    ran.says(&format!("report: {}", bundle.join("report.html").display()));
    sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
    assert_eq!(names(&small.0), ["ballast"], "no part of it is left where it did not fit");
    let runs = sandbox.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(runs[0]["end"], "completed");
}

#[test]
fn a_bundle_whose_place_goes_away_goes_elsewhere() {
    let sandbox = Sandbox::new();
    let small = Small::new(&sandbox.path("out"), "16m");
    let ran = run_and_harm(&sandbox, &small, |bundle| std::fs::remove_dir_all(bundle).unwrap());
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    ran.says(&format!("the bundle is in {} instead", sandbox.bundle().display()));
}

#[test]
fn a_run_whose_bundle_has_no_room_is_not_begun() {
    let sandbox = Sandbox::new();
    let small = Small::new(&sandbox.path("out"), "1m");
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let ran = sandbox.run(&["run", &plan, "-q", "--out", small.0.to_str().unwrap()]).expect(5);
    ran.says("reserve the bundle's space");
    ran.says("with --out");
    assert!(names(&small.0).is_empty() && sandbox.left_in_data().is_empty());
    assert_eq!(sandbox.run(&["runs", "--json"]).expect(0).json(), serde_json::json!([]));
}

const NULL: &str = "version = 1\nname = \"nothing\"\n[target]\nnull = \
                    true\n[workload.matrix]\n[phases]\nmeasure = \"1s\"\n[evidence]\nmin_measure = \
                    \"1s\"\n";

fn null_plan(sandbox: &Sandbox) -> String {
    let path = sandbox.path("null.toml");
    std::fs::write(&path, NULL).unwrap();
    path.display().to_string()
}

#[test]
fn a_full_state_directory_leaves_a_whole_ledger_and_stops_no_later_run() {
    let sandbox = Sandbox::new();
    let state = Small::new(&sandbox.path("state/plimsoll"), "256k");
    let plan = null_plan(&sandbox);
    let run = || sandbox.run(&["run", &plan, "-q"]);
    assert!([0, 3].contains(&run().code));
    // The next line crosses a page boundary of the file, so only its first part has space.
    let ledger = Ledger::at(state.0.join("ledger.jsonl"));
    while std::fs::metadata(ledger.path()).unwrap().len() % 4096 < 3800 {
        let other = Start { run_id: "made-up", name: "nothing", ..Start::default() };
        ledger.start(&other).unwrap();
    }
    let before = std::fs::read(ledger.path()).unwrap();
    std::fs::copy(ledger.path(), sandbox.path("copy")).unwrap();
    // There is no reserved space after the end of the file.
    std::fs::remove_file(ledger.path()).unwrap();
    std::fs::copy(sandbox.path("copy"), ledger.path()).unwrap();
    let ballast = state.fill();
    let ran = run().expect(5);
    ran.says("No space left on device");
    assert_eq!(std::fs::read(ledger.path()).unwrap(), before, "the line is taken back");
    assert_eq!(sandbox.bundles().len(), 1, "a run that could not be entered leaves no bundle");
    std::fs::remove_file(ballast).unwrap();
    assert!([0, 3].contains(&run().code));
    assert_eq!(
        ledger.read().unwrap().last().unwrap().position,
        ledger.read().unwrap().len() as u64
    );
}

#[test]
fn the_end_of_a_run_is_entered_although_the_disk_is_full_by_then() {
    let sandbox = Sandbox::new();
    let state = Small::new(&sandbox.path("state/plimsoll"), "4m");
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let child = sandbox.start(&["run", &plan, "-q"]);
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    state.fill();
    let ran = ended(child);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let runs = sandbox.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(runs[0]["end"], "completed");
}

#[test]
fn a_torn_line_is_put_aside_named_and_stops_nothing() {
    let sandbox = Sandbox::new();
    let plan = null_plan(&sandbox);
    assert!([0, 3].contains(&sandbox.run(&["run", &plan, "-q"]).code));
    let ledger = sandbox.path("state/plimsoll/ledger.jsonl");
    let mut file = std::fs::File::options().append(true).open(&ledger).unwrap();
    file.write_all(b"{\"position\":3,\"previous_sha").unwrap();
    let listed = sandbox.run(&["runs"]).expect(0);
    listed.says("line 3 of the ledger is incomplete: 27 bytes");
    let ran = sandbox.run(&["run", &plan, "-q"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let aside = sandbox.path("state/plimsoll/ledger.jsonl.torn-3");
    ran.says(&format!("moved to {}", aside.display()));
    assert_eq!(std::fs::read(aside).unwrap(), b"{\"position\":3,\"previous_sha");
    let entries = Ledger::at(&ledger).read().unwrap();
    assert_eq!((entries.len(), entries[2].put_aside.as_ref().unwrap().size_bytes), (4, 27));
}

#[test]
fn out_makes_the_directory_that_was_named_and_none_above_it() {
    let sandbox = Sandbox::new();
    let plan = null_plan(&sandbox);
    let out = sandbox.path("mistyped/results");
    let commands: [&[&str]; 2] = [&["run", &plan], &["sweep", &plan]];
    for command in commands {
        let arguments = [command, &["-q", "--out", out.to_str().unwrap()]].concat();
        sandbox.run(&arguments).expect(2).says("its parent directory does not exist");
        assert!(!sandbox.path("mistyped").exists());
    }
    let arguments = ["observe", "--out", out.to_str().unwrap(), "--", "touch", "was-run"];
    sandbox.run(&arguments).expect(2).says("its parent directory does not exist");
    assert!(!sandbox.path("was-run").exists() && !sandbox.path("mistyped").exists());
    let named = sandbox.path("results");
    let ran = sandbox.run(&["run", &plan, "-q", "--out", named.to_str().unwrap()]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(names(&named).len(), 1);
    sandbox.run(&["run", &plan, "-q", "--out", &plan]).expect(2).says("is not a directory");
}
