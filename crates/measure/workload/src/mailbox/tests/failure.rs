//! Tests I/O errors. After an I/O error, a run must end: it issues no further I/O, but its results
//! remain available.

use super::disk::NextStep;
use super::fixture::{PHASE_IO, finish, maps, prepared, small, store};
use crate::mailbox::{
    ExpectedCommits, Failure, Group, MailboxConfig, Phase, Recover, ReplayFrom, Scan, ScanKind,
    Verify,
};
use crate::step::{IoKind, StepWorkload};

const EIO: i32 = 5;

/// Any I/O of a run can fail, with an error or without transferring a byte. The run then ends with
/// this failure, and the store can be recovered.
#[test]
fn the_first_failure_ends_the_run() {
    let config = MailboxConfig { durability: plimsoll_plan::Durability::Fdatasync, ..small(41) };
    let maps = maps(&config);
    let (prepared, _) = prepared(&config, &maps);
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut places = std::collections::HashSet::new();
    for victim in (3..900).step_by(7) {
        let mut disk = prepared.clone();
        let maps: Vec<_> = maps.iter().map(super::fixture::SharedGenerationMap::copy).collect();
        let failure = if victim % 2 == 0 { Err(EIO) } else { Ok(0) };
        disk.failures.insert(disk.issued + victim, failure);
        let mut group = Group::new(store(&config, &maps), &sessions).unwrap();
        disk.run(&mut group, |_, step| if step == 3000 { NextStep::Stop } else { NextStep::On });
        if disk.failed == Some(IoKind::Flush) && failure.is_ok() {
            continue; // A flush transfers nothing, so it can't be short.
        }
        let poison = *group.poison().expect("the failure was not noticed");
        match poison.trouble {
            Failure::Io(errno) => assert_eq!((errno, poison.errno()), (EIO, Some(EIO))),
            Failure::Short { got_bytes, wanted_bytes } => {
                assert!(got_bytes == 0 && wanted_bytes > 0);
            }
            other => panic!("{other:?}"),
        }
        assert!(!poison.is_corruption() && !group.is_closed());
        places.insert(core::mem::discriminant(&poison.place));
        // If the machine is stepped again, it issues no more I/O.
        let mut out = Vec::new();
        let mut arena = crate::step::HeapArena(vec![0; group.arena_size_bytes() as usize]);
        assert_eq!(group.step(disk.now_ns, &[], &mut arena, &mut out), crate::step::Wait::Done);
        assert!(out.is_empty());
        disk.failures.clear();
        disk.crash();
        let recovered = finish(
            &mut disk,
            Recover::new(store(&config, &maps), ReplayFrom::Checkpoint, PHASE_IO),
        );
        finish(&mut disk, Verify::new(recovered, ExpectedCommits::default(), PHASE_IO));
    }
    assert_eq!(places.len(), 3, "pages, logs and files must all have failed once");
}

#[test]
fn a_phase_ends_with_its_first_failure() {
    let config = small(42);
    let maps = maps(&config);
    let (mut disk, store) = prepared(&config, &maps);
    disk.failures.insert(disk.issued + 3, Err(EIO));
    let mut scan = Scan::new(store, ScanKind::Checksum, PHASE_IO);
    disk.run(&mut scan, |_, _| NextStep::On);
    assert!(!scan.is_complete());
    assert_eq!(scan.poison().unwrap().errno(), Some(EIO));
    let progress = scan.progress();
    assert!(progress.done_bytes > 0 && progress.done_bytes < progress.total_bytes);
}

#[test]
fn a_stopped_phase_is_not_complete() {
    let config = small(43);
    let maps = maps(&config);
    let (mut disk, store) = prepared(&config, &maps);
    let mut scan = Scan::new(store, ScanKind::Backup, PHASE_IO);
    disk.run(&mut scan, |_, step| if step == 2 { NextStep::Stop } else { NextStep::On });
    assert!(!scan.is_complete() && scan.poison().is_none());
}

/// A store that was not closed is rejected until it has been recovered.
#[test]
fn a_store_that_was_not_closed_must_be_recovered() {
    let config = small(44);
    let maps = maps(&config);
    let (mut disk, first) = prepared(&config, &maps);
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut group = Group::new(first, &sessions).unwrap();
    disk.run(&mut group, |_, step| if step == 300 { NextStep::Crash } else { NextStep::On });
    let error = Group::new(group.into_store(), &sessions).err().expect("refused");
    assert!(error.to_string().contains("run recovery first"), "{error}");
    disk.crash();
    let from = ReplayFrom::Checkpoint;
    let recovered = finish(&mut disk, Recover::new(store(&config, &maps), from, PHASE_IO));
    assert!(Group::new(recovered, &sessions).is_ok());
}
