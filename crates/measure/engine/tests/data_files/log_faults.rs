//! Tests acknowledged log writes that are lost, on real files. No part of the load reads the log
//! (`copies = 1`). The check at the end of the run must report the file and the byte.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::mail;
use plimsoll_evidence::run::{EndKind, Phase, PhaseKind};
use plimsoll_plan::Plan;
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_record::recording::Recording;

const BLOCK: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Dropped,
    Torn,
    Flipped,
    Misdirected,
}

/// Watcher that damages the log just before the check. It copies the log when the load starts.
struct Harm {
    log: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
    fault: Option<Fault>,
    at: PhaseKind,
    harmed: Option<(PathBuf, usize)>,
}

impl Watcher for Harm {
    fn begin(&mut self, kind: PhaseKind) {
        if kind == PhaseKind::WarmUp {
            self.before = self.files();
        }
        if kind == self.at {
            self.harm();
        }
    }

    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}

impl Harm {
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = std::fs::read_dir(&self.log).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    fn harm(&mut self) {
        let Some(fault) = self.fault else { return };
        let now = self.files();
        // Chooses a block in the middle of the load's writes, because recovery from the checkpoint
        // never reads it.
        let lsn = |block: &[u8]| u64::from_le_bytes(block[24..32].try_into().unwrap());
        let mut written: Vec<(u64, &PathBuf, usize)> = Vec::new();
        for (path, bytes) in &now {
            for (number, block) in bytes.chunks_exact(BLOCK).enumerate() {
                let old = &self.before[path][number * BLOCK..(number + 1) * BLOCK];
                if old != block && &block[4..8] == b"PLMl" {
                    written.push((lsn(block), path, number * BLOCK));
                }
            }
        }
        written.sort();
        let (_, path, at) = written[written.len() / 2];
        let (_, other, other_at) = written[written.len() / 3];
        let mut block = now[path][at..at + BLOCK].to_vec();
        let old = &self.before[path][at..at + BLOCK];
        match fault {
            Fault::Dropped => block.copy_from_slice(old),
            Fault::Torn => block[BLOCK - 512..].copy_from_slice(&old[BLOCK - 512..]),
            Fault::Flipped => block[2000] ^= 4,
            Fault::Misdirected => block.copy_from_slice(&now[other][other_at..other_at + BLOCK]),
        }
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_all_at(&block, at as u64).unwrap();
        file.sync_all().unwrap();
        self.harmed = Some((path.clone(), at));
    }
}

fn plan(data: &Path, phases: &str) -> Plan {
    let text = format!(
        "version = 1\nname = \"faults\"\ndemonstration = true\n[target]\npath = \
         {data:?}\n[workload.mailbox]\nmailboxes = 4\nmailbox_size = \"1MiB\"\niops_per_mailbox = \
         10\ndatabases = 1\nthreads = 4\ncache = \"4MiB\"\ncheckpoint_depth = \
         \"256KiB\"\nlog_buffer = \"64KiB\"\nlog_file_size = \"64KiB\"\nlog_files = \
         12\n{phases}\n[phases]\nwarm_up = \"20ms\"\nmeasure = \"300ms\"\n[evidence]\ninterval = \
         \"50ms\"\nmin_measure = \"50ms\"\n"
    );
    Plan::parse(&text, "faults.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(fault: Option<Fault>, phases: &str, at: PhaseKind) -> (Recording, Option<(PathBuf, usize)>) {
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let log = root.path().join("plimsoll-faults/db00-log");
    let mut harm = Harm { log, before: BTreeMap::new(), fault, at, harmed: None };
    let recording = mail::run(&plan(root.path(), phases), root.path(), &mut harm);
    (recording, harm.harmed)
}

#[test]
fn an_honest_log_is_read_back_whole() {
    let (recording, _) = run(None, "", PhaseKind::Verify);
    assert_eq!(recording.end.kind, EndKind::Completed, "{}", recording.end.says);
    let checks = &recording.checks;
    assert!(checks.log_blocks_checked.unwrap() > 20, "{checks:?}");
    assert_eq!(checks.errors, 0);
}

#[test]
fn every_fault_of_the_log_ends_the_run_as_corrupt_and_names_the_place() {
    let faults = [
        (Fault::Dropped, "lost"),
        (Fault::Torn, "corrupt"),
        (Fault::Flipped, "corrupt"),
        (Fault::Misdirected, "misdirected"),
    ];
    for (fault, kind) in faults {
        let (recording, harmed) = run(Some(fault), "", PhaseKind::Verify);
        assert_eq!(recording.end.kind, EndKind::Corruption, "{fault:?}");
        let damage = &recording.checks.damage[0];
        assert_eq!((damage.target.as_str(), damage.kind.as_str()), ("db0", kind), "{fault:?}");
        let (path, at) = harmed.unwrap();
        let place = format!("({} at byte {at})", path.display());
        assert!(damage.says.ends_with(&place), "{fault:?}: {}", damage.says);
        assert_eq!(recording.checks.errors, 1, "{:?}", recording.checks.damage);
    }
}

/// Soft recovery is requested for many log files, but it reads only a few. It must report the block
/// at which it stopped.
#[test]
fn soft_recovery_says_where_the_log_breaks_off() {
    let requested = "soft_recovery_log_files = 8";
    let (recording, _) = run(None, requested, PhaseKind::SoftRecovery);
    assert_eq!(recording.end.kind, EndKind::Completed, "{}", recording.end.says);
    for fault in [Fault::Dropped, Fault::Torn, Fault::Flipped, Fault::Misdirected] {
        let (recording, harmed) = run(Some(fault), requested, PhaseKind::SoftRecovery);
        assert_eq!(recording.end.kind, EndKind::Corruption, "{fault:?}");
        let (path, at) = harmed.unwrap();
        let place = format!("({} at byte {at})", path.display());
        assert!(recording.end.says.contains(&place), "{fault:?}: {}", recording.end.says);
    }
}
