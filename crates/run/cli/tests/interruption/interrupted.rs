//! A run receives Ctrl-C or SIGTERM at any time, or its device fails. Existing evidence is
//! preserved, and the data is removed or kept as requested.

use std::process::Child;

use crate::support::{self, CommandOutput, LoopFs, Sandbox, SmallPlan, json};

fn ended(child: Child) -> CommandOutput {
    CommandOutput::from(child.wait_with_output().unwrap())
}

/// Waits until the store reaches a state.
fn wait_for_state(sandbox: &Sandbox, state: &str) {
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    support::wait_until(state, || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains(state))
    });
}

#[test]
fn ctrl_c_while_measuring_is_inconclusive_and_keeps_the_evidence() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = "60s".into();
    let path = sandbox.plan(&plan);
    let child = sandbox.start(&["run", &path, "--json", "-q"]);
    wait_for_state(&sandbox, "in-use");
    std::thread::sleep(std::time::Duration::from_secs(3));
    support::signal(&child, "-INT");
    let ran = ended(child).expect(130);
    assert_eq!(ran.json()["verdict"], "INCONCLUSIVE", "{}", ran.stdout);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "interrupted");
    assert!(run["end"]["says"].as_str().unwrap().contains("measure"), "{}", run["end"]);
    assert!(run["classes"][0]["count"].as_u64().unwrap() > 0);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    let runs = sandbox.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(runs[0]["end"], "interrupted");
    assert_eq!(runs[0]["verdict"], "INCONCLUSIVE");
}

#[test]
fn sigterm_keeps_data_that_is_to_be_kept_and_that_data_is_whole() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = "60s".into();
    let path = sandbox.plan(&plan);
    let child = sandbox.start(&["run", &path, "-q", "--keep"]);
    wait_for_state(&sandbox, "in-use");
    std::thread::sleep(std::time::Duration::from_secs(1));
    support::signal(&child, "-TERM");
    ended(child).expect(130).says("INCONCLUSIVE");
    let store = sandbox.data().display().to_string();
    let found = sandbox.run(&["verify", &store, "--json", "-q"]).expect(0).json();
    assert_eq!(found["closed_cleanly"], true);
    assert_eq!(found["log_changes_to_replay"], 0);
}

#[test]
fn ctrl_c_while_the_data_is_made_leaves_nothing_but_evidence() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox_size = "40MiB".into();
    let path = sandbox.plan(&plan);
    let child = sandbox.start(&["run", &path, "-q"]);
    support::wait_until("the first file", || {
        sandbox.data().join("plimsoll-small/db00.edb").exists()
    });
    support::signal(&child, "-INT");
    ended(child).expect(130).says("Interrupted by the operator during");
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    assert_eq!(json(&sandbox.bundle().join("run.json"))["end"]["kind"], "interrupted");
}

#[test]
fn an_io_error_in_mid_run_is_invalid_and_names_the_file() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 512, "noatime,errors=continue");
    let mut plan = SmallPlan::on(&fs.mount);
    plan.measure = "60s".into();
    let path = sandbox.plan(&plan);
    let child = sandbox.start(&["run", &path, "-q", "--json"]);
    let manifest = fs.mount.join("plimsoll-small/store.json");
    support::wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    // From now on, the file system returns EIO for every I/O (FS_IOC_SHUTDOWN).
    support::tool("xfs_io", &["-x", "-c", "shutdown", fs.mount.to_str().unwrap()]);
    let ran = ended(child).expect(5);
    let verdict = ran.json();
    assert_eq!(verdict["verdict"], "INVALID", "{}", ran.stdout);
    assert_eq!(verdict["findings"][0]["rule"], "io-errors");
    let says = verdict["reason"].as_str().unwrap();
    assert!(says.contains("plimsoll-small/db0"), "{says}");
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "io-error");
    assert!(run["classes"][0]["count"].as_u64().unwrap() > 0, "what was measured is kept");
}
