//! Tests the life of a store without failures: it is created, loaded, closed, scanned, verified,
//! and loaded again.

use super::disk::NextStep;
use super::fixture::{PHASE_IO, finish, maps, prepared, small};
use crate::mailbox::{
    Damage, ExpectedCommits, Group, MailboxConfig, Phase, Recover, ReplayFrom, Scan, ScanKind,
    Store, Verify,
};
use crate::step::StepWorkload;

fn load(disk: &mut super::disk::Disk, store: Store, config: &MailboxConfig, steps: u64) -> Store {
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut group = Group::new(store, &sessions).unwrap();
    disk.run(&mut group, |_, step| if step == steps { NextStep::Stop } else { NextStep::On });
    assert_eq!(group.poison(), None);
    assert!(group.is_closed());
    let mut counts = Vec::new();
    group.counters(&mut |name, id, value| counts.push((name, id, value)));
    println!("{counts:?}");
    group.into_store()
}

#[test]
fn a_store_lives() {
    let config = small(11);
    let maps = maps(&config);
    let (mut disk, store) = prepared(&config, &maps);
    let store = load(&mut disk, store, &config, 4000);
    let store = finish(&mut disk, Scan::new(store, ScanKind::Checksum, PHASE_IO));
    let mut verify = Verify::new(store, ExpectedCommits::default(), PHASE_IO);
    disk.run(&mut verify, |_, _| NextStep::On);
    assert!(verify.is_complete());
    assert_eq!(verify.findings(), []);
    assert_eq!(verify.report().log_changes, 0, "a closed store has nothing to replay");
    assert_eq!(verify.report().pages_rebuilt, [0; Damage::ALL.len()]);
    let store = Box::new(verify).into_store();
    let store = load(&mut disk, store, &config, 2000);
    let mut recover = Recover::new(store, ReplayFrom::LogFiles(3), PHASE_IO);
    disk.run(&mut recover, |_, _| NextStep::On);
    assert!(recover.is_complete());
    assert_eq!(recover.findings(), []);
    let report = recover.report();
    assert!(report.log_changes > 20 && report.pages_written > 20, "{report:?}");
    let store = Box::new(recover).into_store();
    let store = finish(&mut disk, Verify::new(store, ExpectedCommits::default(), PHASE_IO));
    let store = load(&mut disk, store, &config, 2000);
    finish(&mut disk, Scan::new(store, ScanKind::Backup, PHASE_IO));
}
