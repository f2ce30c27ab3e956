//! After every change of the file, the cached ledger must return the same entries as a full read.

use std::fs::{self, FileTimes, OpenOptions};
use std::io::Write;

use super::super::{Start, head};
use super::*;

struct Case {
    _directory: tempfile::TempDir,
    ledger: Ledger,
    kept: CachedLedger,
}

impl Case {
    /// Creates a ledger with three lines and reads it.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path().join("ledger.jsonl"));
        let kept = CachedLedger::new(ledger.clone());
        let case = Self { _directory: directory, ledger, kept };
        ["a", "b", "c"].into_iter().for_each(|run| case.enter(run));
        assert_eq!(case.lines(), 3);
        case
    }

    fn enter(&self, run_id: &str) {
        self.ledger.start(&Start { run_id, unix_ns: 1, ..Start::default() }).unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.ledger.path()).unwrap()
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.ledger.path(), bytes).unwrap();
    }

    /// Reads the ledger twice, to show that the first read does not cache an error. Returns the
    /// number of lines.
    #[track_caller]
    fn lines(&self) -> usize {
        let fresh = self.ledger.read_links().unwrap();
        for _ in 0..2 {
            let (links, torn) = self.kept.read().unwrap();
            assert_eq!((&*links, &torn), (&fresh.0, &fresh.1));
        }
        fresh.0.len()
    }

    /// Asserts that two successive reads report the ledger as broken at this line.
    #[track_caller]
    fn is_broken_at(&self, at: u64) {
        let fresh = self.ledger.read_links().unwrap_err().to_string();
        for _ in 0..2 {
            let error = self.kept.read().unwrap_err();
            assert!(
                matches!(error, EvidenceError::LedgerBroken { line, .. } if line == at),
                "{error}"
            );
            assert_eq!(error.to_string(), fresh);
        }
    }

    /// Returns true if both results are in the same memory. No line was then parsed again.
    fn is_shared_with(&self, earlier: &Arc<Vec<Link>>) -> bool {
        Arc::ptr_eq(earlier, &self.kept.read().unwrap().0)
    }
}

#[test]
fn parses_only_appended_lines() {
    let case = Case::new();
    let before = case.kept.read().unwrap().0;
    assert!(case.is_shared_with(&before), "nothing came");
    case.enter("d");
    assert_eq!(case.lines(), 4);
    assert_eq!(before.len(), 3, "what was given out stays as it was");
    assert!(!case.is_shared_with(&before));
}

#[test]
fn detects_any_changed_byte_with_unchanged_size_and_time() {
    let case = Case::new();
    let (whole, times) = (case.bytes(), fs::metadata(case.ledger.path()).unwrap());
    for (run, at) in [("a", 2), ("b", 3), ("c", 3)] {
        let text = String::from_utf8(whole.clone()).unwrap();
        let changed = text.replace(&format!("\"{run}\""), "\"x\"");
        assert_eq!(changed.len(), whole.len());
        case.write(changed.as_bytes());
        let file = OpenOptions::new().write(true).open(case.ledger.path()).unwrap();
        file.set_times(FileTimes::new().set_modified(times.modified().unwrap())).unwrap();
        case.is_broken_at(at);
        case.write(&whole);
        assert_eq!(case.lines(), 3, "and it is let pass again when it is as it was");
    }
}

#[test]
fn detects_a_changed_cached_line_before_a_valid_new_one() {
    let case = Case::new();
    let known = String::from_utf8(case.bytes()).unwrap();
    case.enter("d");
    let appended = String::from_utf8(case.bytes()).unwrap()[known.len()..].to_owned();
    case.write((known.replace("\"a\"", "\"x\"") + &appended).as_bytes());
    case.is_broken_at(2);
}

#[test]
fn detects_a_truncated_or_missing_ledger() {
    let case = Case::new();
    let whole = case.bytes();
    let end = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    case.write(&whole[..end]);
    case.is_broken_at(3);
    fs::remove_file(case.ledger.path()).unwrap();
    case.is_broken_at(1);
    fs::remove_file(head::path_of(case.ledger.path())).unwrap();
    assert_eq!(case.lines(), 0);
}

#[test]
fn rereads_a_replaced_ledger_from_its_first_line() {
    let case = Case::new();
    let other = Ledger::at(case.ledger.path().with_file_name("other.jsonl"));
    for run_id in ["a", "b", "c", "d"] {
        other.start(&Start { run_id, unix_ns: 2, ..Start::default() }).unwrap();
    }
    fs::rename(other.path(), case.ledger.path()).unwrap();
    case.is_broken_at(3);
    fs::rename(head::path_of(other.path()), head::path_of(case.ledger.path())).unwrap();
    assert_eq!(case.lines(), 4);
    assert_eq!(case.kept.read().unwrap().0[0].entry.unix_ns, 2);
}

#[test]
fn detects_appended_lines_that_break_the_chain() {
    let case = Case::new();
    let known = case.bytes();
    case.enter("d");
    case.enter("e");
    let all = case.bytes();
    let fifth = all[..all.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    case.write(&[&known[..], &all[fifth..]].concat());
    case.is_broken_at(4);
    case.write(&[&known[..], b"\xff\xfe\n"].concat());
    case.is_broken_at(4);
    case.write(&all);
    assert_eq!(case.lines(), 5);
}

/// If a writer is killed, a torn line remains. The next writer moves it to another file.
#[test]
fn reports_a_torn_line_until_it_is_moved_away() {
    let case = Case::new();
    let (whole, three) = (case.bytes(), case.kept.read().unwrap().0);
    case.write(&[&whole[..], b"{\"position\":4,"].concat());
    assert_eq!(case.kept.read().unwrap().1.map(|torn| (torn.line, torn.size_bytes)), Some((4, 14)));
    assert_eq!(case.lines(), 3);
    assert!(case.is_shared_with(&three), "the whole lines are known");
    case.enter("d");
    assert_eq!(case.lines(), 4);
    // The file was truncated, so it lacks a line that is in the cache.
    let text = case.bytes();
    case.write(&text[..text.len() - 9]);
    case.is_broken_at(4);
}

#[test]
fn rereads_a_last_line_without_line_feed() {
    let case = Case::new();
    let whole = case.bytes();
    case.write(&whole[..whole.len() - 1]);
    assert_eq!(case.lines(), 3);
    case.enter("d");
    assert_eq!(case.lines(), 4);
    case.write(&whole[..whole.len() - 1]);
    assert!(case.kept.read().is_err(), "the head has four lines");
    head::Head::of(&case.ledger.parse(&whole).unwrap()).unwrap().write(case.ledger.path()).unwrap();
    assert_eq!(case.lines(), 3);
    OpenOptions::new()
        .append(true)
        .open(case.ledger.path())
        .unwrap()
        .write_all(b" more\n")
        .unwrap();
    case.is_broken_at(3);
}

#[test]
fn detects_a_changed_or_removed_head_without_new_lines() {
    let case = Case::new();
    let head = head::path_of(case.ledger.path());
    let text = fs::read_to_string(&head).unwrap();
    fs::write(&head, text.replace('3', "4")).unwrap();
    assert!(case.kept.read().is_err());
    fs::remove_file(&head).unwrap();
    case.is_broken_at(0);
    fs::write(&head, text).unwrap();
    assert_eq!(case.lines(), 3);
}

#[test]
fn concurrent_readers_see_only_whole_lines() {
    let case = Case::new();
    std::thread::scope(|scope| {
        let (ledger, kept) = (&case.ledger, &case.kept);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    for run in 0..10 {
                        let run_id = format!("{writer}-{run}");
                        let start = Start { run_id: &run_id, unix_ns: 1, ..Start::default() };
                        ledger.start(&start).unwrap();
                    }
                })
            })
            .collect();
        let mut before = 3;
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let (links, torn) = kept.read().unwrap();
            assert!(links.len() >= before && torn.is_none());
            before = links.len();
        }
    });
    assert_eq!(case.lines(), 23);
}
