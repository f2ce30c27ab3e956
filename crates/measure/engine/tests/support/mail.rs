//! Support for runs of the mail store.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::end_condition::FixedDuration;
use plimsoll_engine::mailbox::{self, MailRun, StoreDirectories};
use plimsoll_plan::Plan;
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;

/// Runs a plan with its state directory below `root`, and removes the run's files.
pub fn run(plan: &Plan, root: &Path, watcher: &mut dyn Watcher) -> Recording {
    run_with_witness(plan, root, watcher, None)
}

/// Does the same as [`run`], and records the commits in a witness.
pub fn run_with_witness(
    plan: &Plan,
    root: &Path,
    watcher: &mut dyn Watcher,
    witness: Option<&Path>,
) -> Recording {
    let plan = plan.resolve();
    let mailbox = plan.workload.mailbox().unwrap();
    let target = &plan.targets[0];
    let store_directories =
        StoreDirectories::create(&plan, target, mailbox, &root.join("state"), 7, None).unwrap();
    let (recording, store_directories) = mailbox::run(MailRun {
        plan: &plan,
        target,
        mailbox,
        store_directories,
        interrupt: &AtomicBool::new(false),
        watcher,
        witness,
        spool: None,
        end_condition: &mut FixedDuration,
    });
    store_directories.remove().unwrap();
    recording
}
