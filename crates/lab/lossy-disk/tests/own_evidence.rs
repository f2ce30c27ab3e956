//! Tests power loss of the host that generates the load. The bundle and the ledger are on a disk
//! that loses power, each time at a different operation. Afterwards the ledger must be readable,
//! and each seal in it must match its bundle.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use plimsoll_evidence::ledger::{Event, Ledger, Start};
use plimsoll_evidence::{BundleWriter, seal};
use plimsoll_lossy_disk::disk::Behaviour;
use plimsoll_lossy_disk::mount::{CONTROL, LossyMount};
use plimsoll_plan::{Plan, gallery};

/// Writes two runs. Returns `None` if the disk loses power before both are written.
fn write_runs(root: &Path) -> Option<()> {
    let plan = Plan::parse(gallery()[0].text, "a.toml").unwrap();
    let ledger = Ledger::at(root.join("ledger.jsonl"));
    for run_id in ["a", "b"] {
        let start = Start {
            run_id,
            unix_ns: 1,
            name: "a",
            plan_sha256: "x",
            experiment: None,
            question: None,
            known: &[],
        };
        ledger.start(&start).ok()?;
        let writer = BundleWriter::create(&root.join("runs"), run_id).ok()?;
        writer.plan(plan.text(), None, &plan.resolve()).ok()?;
        let sealed = writer.seal().ok()?;
        ledger.end(run_id, 2, "completed", "PASS", &sealed, None).ok()?;
    }
    Some(())
}

/// Checks the files that survived. Returns the number of runs that the ledger records as ended.
fn check(root: &Path, cut: u64) -> usize {
    let ledger = Ledger::at(root.join("ledger.jsonl"));
    if !ledger.path().exists() {
        return 0;
    }
    let (entries, _) = ledger.read_with_tail().unwrap_or_else(|error| panic!("cut {cut}: {error}"));
    let mut ended = 0;
    for entry in entries {
        let Event::Ended { seal_sha256, .. } = &entry.event else { continue };
        let sealed = seal::open(&root.join("runs").join(&entry.run_id));
        let sealed = sealed.unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        assert_eq!(sealed.sha256, *seal_sha256, "cut {cut}");
        ended += 1;
    }
    // The ledger accepts another entry.
    record_another(&ledger, cut);
    ended
}

fn record_another(ledger: &Ledger, cut: u64) {
    let entered = ledger.end("later", 3, "completed", "PASS", "x", None);
    entered.unwrap_or_else(|error| panic!("cut {cut}: {error}"));
}

#[test]
fn a_seal_in_the_ledger_is_on_the_disk_at_every_power_loss() {
    let mut seen = [false; 3];
    for cut in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let mount = LossyMount::new(directory.path(), Behaviour::Honest, cut).unwrap();
        mount.cut_after(cut);
        let all = write_runs(directory.path());
        std::fs::write(directory.path().join(CONTROL), "cut").unwrap();
        std::fs::write(directory.path().join(CONTROL), "restore").unwrap();
        seen[check(directory.path(), cut)] = true;
        if all.is_some() {
            // The last cut came after all writes, so every operation was tested.
            assert!(cut > 30, "{cut} operations");
            break;
        }
    }
    assert_eq!(seen, [true; 3]);
}
