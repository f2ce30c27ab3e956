//! Tests of `--resume`, with a directory that the cut command renames.

use plimsoll_judge::verdict::VerdictKind;
use plimsoll_plan::{CutKind, SyncMethod};

use super::*;
use crate::listener::RecordedMessages;

fn carry_out_quietly(request: &DurabilityRequest) -> (DurabilityTest, String) {
    let mut messages = RecordedMessages::default();
    let stop = AtomicBool::new(false);
    let test = carry_out(request, &stop, &|_, _| true, &mut messages).unwrap();
    (test, messages.0.concat())
}

#[test]
fn a_test_is_resumed_after_the_target_has_come_back() {
    let (root, outside) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir().unwrap());
    let (target, away) = (root.path().join("target"), root.path().join("away"));
    std::fs::create_dir(&target).unwrap();
    let first = DurabilityRequest {
        place: TargetPlace::Directory(target.clone()),
        destroy: Vec::new(),
        settings: DurabilitySettings {
            data_id: 7,
            target: target.display().to_string(),
            is_device: false,
            size_bytes: 1 << 20,
            block_bytes: 4096,
            threads: 2,
            sync: SyncMethod::Fdatasync,
            direct: false,
            cuts: 1,
            kind: CutKind::Simulated,
            cut: Some(format!("mv {} {}", target.display(), away.display())),
            restore: None,
            // The threads have the file open, so their writes continue.
            cut_drops_writes: true,
            seed: 1,
        },
        witness: WitnessPlace::Directory(outside.path().join("w")),
        load: Duration::from_millis(50),
        timeout: Duration::from_millis(200),
        keep: false,
        resume: false,
    };
    let (test, says) = carry_out_quietly(&first);
    assert!(test.cuts[0].not_restored.is_some(), "{test:?}");
    assert!(says.contains("plimsoll-durability with `plimsoll clean"), "{says}");

    let resumed = DurabilityRequest { resume: true, ..first };
    // The target is still missing.
    let (test, _) = carry_out_quietly(&resumed);
    assert_eq!((test.cuts.len(), test.cuts[0].not_restored.is_some()), (1, true), "{test:?}");
    std::fs::rename(&away, &target).unwrap();
    let (test, _) = carry_out_quietly(&resumed);
    let [cut] = &test.cuts[..] else { panic!("{test:?}") };
    assert_eq!((cut.number, &cut.not_restored, cut.resumed), (1, &None, false));
    assert!(cut.acknowledged > 0 && cut.check.is_some(), "{cut:?}");
    // In memory, reads may be served from the page cache, so the cut may not be valid.
    let blocks = &cut.check.as_ref().unwrap().blocks;
    assert_eq!(blocks.damaged(), 0, "{blocks:?}");
    assert_ne!(judge(&test).verdict, VerdictKind::Fail);
}

#[test]
fn a_test_that_has_ended_is_not_resumed() {
    let (root, outside) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir().unwrap());
    let place = TargetPlace::Directory(root.path().to_owned());
    let phase = plimsoll_plan::DurabilityPhase {
        size_bytes: 1 << 20,
        threads: 1,
        sync: SyncMethod::Fdatasync,
        direct: false,
        cuts: 1,
        kind: CutKind::Simulated,
        cut: vec!["true".to_owned()],
        restore: Vec::new(),
        cut_drops_writes: false,
        load_ns: 10_000_000,
        timeout_ns: 10_000_000_000,
        witness: None,
    };
    let witness = WitnessPlace::Directory(outside.path().join("w"));
    let mut request = DurabilityRequest::of_phase(&phase, place, witness, 1);
    // The command cuts nothing off, so no cut is valid.
    let (ended, _) = carry_out_quietly(&request);
    assert_eq!(ended.cuts.len() as u64, USELESS_CUTS_MAX);
    request.resume = true;
    let (test, says) = carry_out_quietly(&request);
    assert_eq!(test, ended);
    assert!(says.contains("this test has ended"), "{says}");
}
