//! The ledger lists all runs on this machine, including aborted runs, in the order in which they
//! started.
//!
//! The ledger is a text file of JSON lines. Each line contains the SHA-256 of the previous line. If
//! a line is removed or changed, the hash in the next line no longer matches. A run appends a line
//! when it starts and another line when it ends. If a run was killed, only its start is recorded.
//! Writers use an exclusive lock, so that concurrent runs do not fork the chain.
//!
//! A line is either appended completely or not at all: a failed append is rolled back. If a writer
//! was killed, the next writer moves the partial line to another file ([`TornTail`]).
//!
//! A second file, the head ([`head`]), contains the number of lines and the hash of the last line.
//! The head protects the last line, because no later line protects it yet.
//!
//! A bundle contains the identity of the ledger (the hash of its first line), the time of the
//! ledger's first line, the hash of the line that records the start of the run, and the hash of the
//! line before that. A ledger that is truncated, restarted or rewritten therefore contradicts the
//! bundles of the runs that it recorded ([`position`]).

mod appended_line;
pub mod cached;
pub mod head;
pub mod position;
pub mod question;
pub mod statement;
mod tail;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use serde::{Deserialize, Serialize};

use crate::EvidenceError;
use crate::run::LedgerPosition;
use crate::seal::{self, sha256_hex};

use appended_line::AppendedLine;

pub use cached::CachedLedger;
pub use head::{Head, HeadState};
pub use position::LedgerMatch;
pub use question::Question;
pub use statement::Statement;
pub use tail::{TornBytes, TornTail};

/// Space in bytes that each append reserves after the end of the ledger, so that a run can record
/// its end even if the disk is full. A line is a few hundred bytes long.
const RESERVED_BYTES: u64 = 64 << 10;

/// Event that a line of the ledger records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The line records that a run started.
    Started {
        /// Name of the plan.
        name: String,
        /// SHA-256 of the resolved plan.
        plan_sha256: String,
        /// Experiment to which the run belongs; `None` for a single run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        experiment: Option<String>,
        /// Workload and system of the run; `None` in lines of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    /// The line records that a run ended and its bundle was sealed.
    Ended {
        /// Outcome of the run. The words are those of `run.json`.
        end: String,
        /// Verdict, in capital letters.
        verdict: String,
        /// SHA-256 of the file `SHA256SUMS` in the bundle.
        seal_sha256: String,
        /// SHA-256 of the derived files; `None` in lines of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        derived: Option<DerivedHashes>,
    },
    /// The line records that the evidence of a run was judged again and its derived files were
    /// rewritten.
    Judged {
        /// Verdict, in capital letters.
        verdict: String,
        /// Hashes of the derived files that were rewritten.
        derived: DerivedHashes,
    },
    /// The line records that the report of an experiment was written. `run_id` is the name of the
    /// experiment.
    Together {
        /// SHA-256 of the file `SHA256SUMS` in the directory of the experiment.
        seal_sha256: String,
    },
}

/// SHA-256 of the files that were derived from a bundle's evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedHashes {
    /// SHA-256 of `verdict.json`.
    pub verdict_sha256: String,
    /// SHA-256 of `report.html`.
    pub report_sha256: String,
}

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Line number, counted from 1.
    pub position: u64,
    /// SHA-256 of the previous line without its line feed. In the first line, it is the SHA-256 of
    /// the empty string.
    pub previous_sha256: String,
    /// Name of the run that the line belongs to.
    pub run_id: String,
    /// Time on the wall clock, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Describes a partial line that followed the previous line. The writer of this line moved the
    /// partial line to another file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_aside: Option<TornBytes>,
    /// States whether the ledger matched its head when this line was written; `None` if there was
    /// no head yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadState>,
    /// Event.
    #[serde(flatten)]
    pub event: Event,
}

/// The ledger of a machine.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// Creates a handle for the ledger at `path`. The file does not have to exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the start of a run.
    ///
    /// # Errors
    /// The ledger cannot be written, or its chain is broken.
    pub fn start(
        &self,
        start: &Start<'_>,
    ) -> Result<(LedgerPosition, Option<TornTail>), EvidenceError> {
        let event = Event::Started {
            name: start.name.to_owned(),
            plan_sha256: start.plan_sha256.to_owned(),
            experiment: start.experiment.map(str::to_owned),
            question: start.question.clone(),
        };
        let appended = self.append(start.run_id, start.unix_ns, event)?;
        Ok((appended.position_of(start), appended.torn))
    }

    /// Records the end of a run.
    ///
    /// # Errors
    /// See [`Ledger::start`].
    pub fn end(
        &self,
        run_id: &str,
        unix_ns: u64,
        end: &str,
        verdict: &str,
        seal_sha256: &str,
        derived: Option<DerivedHashes>,
    ) -> Result<(), EvidenceError> {
        let event = Event::Ended {
            end: end.to_owned(),
            verdict: verdict.to_owned(),
            seal_sha256: seal_sha256.to_owned(),
            derived,
        };
        self.append(run_id, unix_ns, event).map(|_| ())
    }

    /// Records any other event of a run or experiment.
    ///
    /// # Errors
    /// See [`Ledger::start`].
    pub fn enter(&self, run_id: &str, unix_ns: u64, event: Event) -> Result<(), EvidenceError> {
        self.append(run_id, unix_ns, event).map(|_| ())
    }

    /// Reads the whole ledger, and checks the chain of hashes.
    ///
    /// # Errors
    /// [`EvidenceError::LedgerBroken`] contains the number of the first line that does not match
    /// the previous line.
    pub fn read(&self) -> Result<Vec<Entry>, EvidenceError> {
        Ok(self.read_chain()?.into_iter().map(|link| link.entry).collect())
    }

    /// Like [`Self::read`], but if the last line is torn, also returns this line. The ledger is not
    /// changed.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub fn read_with_tail(&self) -> Result<(Vec<Entry>, Option<TornTail>), EvidenceError> {
        let (links, torn) = self.read_links()?;
        Ok((links.into_iter().map(|link| link.entry).collect(), torn))
    }

    /// Reads the whole ledger, and checks the chain of hashes. Returns each line with its hash.
    ///
    /// # Errors
    /// See [`Ledger::read`].
    pub fn read_chain(&self) -> Result<Vec<Link>, EvidenceError> {
        self.read_links().map(|(links, _)| links)
    }

    fn read_links(&self) -> Result<(Vec<Link>, Option<TornTail>), EvidenceError> {
        let (bytes, head) = self.read_bytes()?;
        let (lines, torn) = tail::split(&bytes);
        let links = self.parse(lines)?;
        self.hold(&head, &links)?;
        let torn = TornTail::after(&links, torn);
        Ok((links, torn))
    }

    /// Returns the bytes of the ledger, and the state of its head. If the ledger file is missing,
    /// returns no bytes.
    fn read_bytes(&self) -> Result<(Vec<u8>, head::StoredHead), EvidenceError> {
        let io = |error| EvidenceError::io("read", &self.path, error);
        let mut bytes = Vec::new();
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(io(error)),
        };
        // The lock makes this function wait until writers have finished, so that a line that is
        // being written does not look torn. If the file system has no locks, the ledger is read
        // without a lock.
        let _ = file.as_ref().map(|file| flock(file, FlockOperation::LockShared));
        let head = head::read(&self.path);
        if let Some(mut file) = file {
            file.read_to_end(&mut bytes).map_err(io)?;
        }
        Ok((bytes, head))
    }

    fn hold(&self, head: &head::StoredHead, links: &[Link]) -> Result<(), EvidenceError> {
        match head::check(head, links) {
            Some(Err((line, what))) => {
                Err(EvidenceError::LedgerBroken { path: self.path.clone(), line, what })
            }
            _ => Ok(()),
        }
    }

    fn append(
        &self,
        run_id: &str,
        unix_ns: u64,
        event: Event,
    ) -> Result<AppendedLine, EvidenceError> {
        let io = |doing| move |error| EvidenceError::io(doing, &self.path, error);
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(io("create the directory of"))?;
        }
        let mut file = self.lock()?;
        let LockedLedger { size_bytes, links: earlier, put_aside, torn } =
            self.read_whole_lines(&mut file)?;
        let previous = earlier.last().map(|link| link.sha256.clone());
        // Lost or changed lines cannot be recovered. The new line records the mismatch, and the
        // chain continues.
        let head = head::check(&head::read(&self.path), &earlier).map(|held| match held {
            Ok(()) => HeadState::Held,
            Err((_, says)) => HeadState::Differed(says),
        });
        let entry = Entry {
            position: earlier.len() as u64 + 1,
            previous_sha256: previous.unwrap_or_else(|| sha256_hex(b"")),
            run_id: run_id.to_owned(),
            unix_ns,
            put_aside,
            head,
            event,
        };
        let mut line = serde_json::to_string(&entry).map_err(|e| io("write")(e.into()))?;
        let sha256 = sha256_hex(line.as_bytes());
        line.push('\n');
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // If the rollback also fails, the next writer finds a torn tail.
            let _ = file.set_len(size_bytes);
            return Err(io("write")(error));
        }
        if size_bytes == 0 {
            // The ledger is new, so the directory must be synced too.
            self.path.parent().map_or(Ok(()), seal::sync)?;
        }
        // Errors are ignored, because some file systems cannot reserve space.
        let end_bytes = size_bytes + line.len() as u64;
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, end_bytes, RESERVED_BYTES);
        // If the head cannot be replaced, it remains older than the ledger, and protects only the
        // lines that it counts.
        let _ = Head { lines: entry.position, last_sha256: sha256.clone() }.write(&self.path);
        Ok(AppendedLine { own: Link { entry, sha256 }, earlier, torn })
    }

    /// Opens the ledger for appending, and waits until it can lock the ledger.
    fn lock(&self) -> Result<File, EvidenceError> {
        let io = |doing| move |error| EvidenceError::io(doing, &self.path, error);
        let file = self.open().map_err(io("open"))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| io("lock")(e.into()))?;
        Ok(file)
    }

    /// Reads a locked ledger. Moves a partial last line to another file, and removes it from the
    /// ledger.
    fn read_whole_lines(&self, file: &mut File) -> Result<LockedLedger, EvidenceError> {
        let io = |doing| move |error| EvidenceError::io(doing, &self.path, error);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io("read"))?;
        let (lines, torn) = tail::split(&bytes);
        let links = self.parse(lines)?;
        let (mut size_bytes, torn_bytes) = (lines.len() as u64, torn.len() as u64);
        let (mut put_aside, mut moved) = (None, None);
        if torn_bytes > 0 {
            let line = links.len() as u64 + 1;
            let path = tail::move_torn_tail(&self.path, line, torn)?;
            put_aside = Some(TornBytes::from_bytes(torn));
            moved = Some(TornTail { line, size_bytes: torn_bytes, moved_to: Some(path) });
            file.set_len(size_bytes).map_err(io("write"))?;
        } else if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all(b"\n").map_err(io("write"))?;
            size_bytes += 1;
        }
        Ok(LockedLedger { size_bytes, links, put_aside, torn: moved })
    }

    fn open(&self) -> std::io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).open(&self.path)
    }

    fn parse(&self, lines: &[u8]) -> Result<Vec<Link>, EvidenceError> {
        let mut links = Vec::new();
        self.parse_after(&mut links, lines)?;
        Ok(links)
    }

    /// Parses the whole lines that follow the lines in `links`, and adds them to `links`.
    fn parse_after(&self, links: &mut Vec<Link>, lines: &[u8]) -> Result<(), EvidenceError> {
        let broken = |line, what: String| EvidenceError::LedgerBroken {
            path: self.path.clone(),
            line,
            what,
        };
        let earlier = links.len() as u64;
        let text = std::str::from_utf8(lines).map_err(|error| {
            let before = &lines[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            broken(earlier + line, "it is not text".into())
        })?;
        let mut previous = links.last().map_or_else(|| sha256_hex(b""), |last| last.sha256.clone());
        for (index, line) in text.lines().enumerate() {
            let number = earlier + index as u64 + 1;
            let entry: Entry = serde_json::from_str(line)
                .map_err(|error| broken(number, format!("it cannot be parsed: {error}")))?;
            if entry.position != number {
                return Err(broken(
                    number,
                    format!("its `position` field contains {}", entry.position),
                ));
            }
            if entry.previous_sha256 != previous {
                return Err(broken(number, "the previous line was changed or removed".into()));
            }
            previous = sha256_hex(line.as_bytes());
            links.push(Link { entry, sha256: previous.clone() });
        }
        Ok(())
    }
}

/// Start of a run, as the ledger records it.
#[derive(Clone, Debug, Default)]
pub struct Start<'a> {
    /// Name of the run.
    pub run_id: &'a str,
    /// Name of the plan.
    pub name: &'a str,
    /// SHA-256 of the resolved plan.
    pub plan_sha256: &'a str,
    /// Time of the start on the wall clock, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Experiment to which the run belongs; `None` for a single run.
    pub experiment: Option<&'a str>,
    /// Workload and system of the run.
    pub question: Option<Question>,
    /// Positions that existing bundles claim to have in this ledger. The bundle of the new run
    /// records how many of these positions the ledger does not confirm.
    pub known: &'a [position::ClaimedPosition],
}

/// A line of the ledger and its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The line.
    pub entry: Entry,
    /// SHA-256 of the line's text, without the line feed.
    pub sha256: String,
}

/// A ledger that is locked and ends with a whole line.
struct LockedLedger {
    size_bytes: u64,
    links: Vec<Link>,
    put_aside: Option<TornBytes>,
    torn: Option<TornTail>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path().join("state/ledger.jsonl"));
        (directory, ledger)
    }

    fn of<'a>(run_id: &'a str, name: &'a str, plan_sha256: &'a str) -> Start<'a> {
        Start { run_id, name, plan_sha256, unix_ns: 1, ..Start::default() }
    }

    #[test]
    fn counts_earlier_runs_of_the_same_plan_and_those_that_did_not_complete() {
        let (_directory, ledger) = ledger();
        ledger.start(&of("a", "p", "hash")).unwrap();
        ledger.end("a", 2, "completed", "PASS", "seal", None).unwrap();
        ledger.start(&of("b", "p", "hash")).unwrap();
        ledger.start(&of("c", "q", "other")).unwrap();
        let (position, _) = ledger.start(&of("d", "p", "hash")).unwrap();
        assert_eq!(position.position, 5);
        assert_eq!(position.earlier_runs_of_plan, 2);
        assert_eq!(position.earlier_runs_not_completed, 1);
        assert_eq!(ledger.read().unwrap().len(), 5);
    }

    #[test]
    fn counts_earlier_runs_alike_outside_the_experiment() {
        let (_directory, ledger) = ledger();
        let question = |bytes: f64| Question {
            target: "ext4 on sda".to_owned(),
            numbers: [("data_bytes".to_owned(), bytes)].into(),
            ..Question::default()
        };
        let enter = |run: &str, plan: &str, bytes: f64, experiment: Option<&str>| {
            let question = Some(question(bytes));
            ledger.start(&Start { question, experiment, ..of(run, plan, plan) }).unwrap().0
        };
        enter("a", "p", 1e9, None);
        enter("b", "q", 1e9 + 4096.0, None);
        enter("c", "r", 2e9, None);
        enter("d", "p", 1e9, Some("e"));
        let position = enter("f", "s", 1e9 + 8192.0, Some("e"));
        assert_eq!(position.earlier_runs_of_plan, 0);
        assert_eq!(position.earlier_runs_alike, Some(2));
        assert_eq!(position.earlier_alike_not_completed, Some(2));
    }

    #[test]
    fn a_removed_or_changed_line_breaks_the_chain() {
        let (_directory, ledger) = ledger();
        for run in ["a", "b", "c"] {
            ledger.start(&of(run, "p", "hash")).unwrap();
        }
        let text = fs::read_to_string(ledger.path()).unwrap();
        let without_second: String = text
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != 1)
            .map(|(_, l)| format!("{l}\n"))
            .collect();
        fs::write(ledger.path(), without_second).unwrap();
        assert!(matches!(ledger.read(), Err(EvidenceError::LedgerBroken { line: 2, .. })));
        fs::write(ledger.path(), text.replace("\"b\"", "\"x\"")).unwrap();
        assert!(matches!(ledger.read(), Err(EvidenceError::LedgerBroken { line: 3, .. })));
        assert!(ledger.start(&of("d", "p", "hash")).is_err());
    }

    /// If a writer is killed, the file may end with any part of the writer's line, or with zeroes
    /// in place of the line.
    #[test]
    fn moves_a_torn_tail_away_and_continues_the_chain() {
        let (_directory, ledger) = ledger();
        ledger.start(&of("a", "p", "hash")).unwrap();
        ledger.end("a", 2, "completed", "PASS", "seal", None).unwrap();
        let whole = fs::read(ledger.path()).unwrap();
        let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let first = &whole[..second];
        let mut zeroed = whole.clone();
        zeroed[second + 10..whole.len() - 1].fill(0);
        let cut = |at: usize| whole[..at].to_vec();
        let tails = [cut(second + 1), cut(second + 40), cut(whole.len() - 2), zeroed];
        for (number, torn) in tails.into_iter().enumerate() {
            fs::write(ledger.path(), &torn).unwrap();
            // The head is written after the line, so it still describes the first line.
            let links = ledger.parse(first).unwrap();
            Head::of(&links).unwrap().write(ledger.path()).unwrap();
            let (entries, tail) = ledger.read_with_tail().unwrap();
            let size_bytes = (torn.len() - second) as u64;
            assert_eq!(entries.len(), 1, "tail {number}");
            assert_eq!(tail, Some(TornTail { line: 2, size_bytes, moved_to: None }));
            assert_eq!(fs::read(ledger.path()).unwrap(), torn, "reading changes nothing");
            let (position, tail) = ledger.start(&of("b", "p", "hash")).unwrap();
            assert_eq!((position.position, position.earlier_runs_not_completed), (2, 1));
            let moved_to = tail.unwrap().moved_to.unwrap();
            assert_eq!(fs::read(moved_to).unwrap(), &torn[second..]);
            let entries = ledger.read().unwrap();
            assert_eq!(entries.len(), 2);
            assert_eq!(entries[1].put_aside, Some(TornBytes::from_bytes(&torn[second..])));
            assert!(fs::read(ledger.path()).unwrap().starts_with(first));
        }
    }

    #[test]
    fn a_line_that_lacks_only_its_line_feed_is_whole() {
        let (_directory, ledger) = ledger();
        ledger.start(&of("a", "p", "hash")).unwrap();
        let text = fs::read_to_string(ledger.path()).unwrap();
        fs::write(ledger.path(), text.trim_end()).unwrap();
        assert_eq!(ledger.read_with_tail().unwrap().1, None);
        ledger.start(&of("b", "p", "hash")).unwrap();
        assert_eq!(ledger.read().unwrap().len(), 2);
        assert!(fs::read_to_string(ledger.path()).unwrap().starts_with(&text));
    }

    /// If a line before the last line is invalid, it was changed and not torn.
    #[test]
    fn only_the_end_can_be_torn() {
        let (_directory, ledger) = ledger();
        ledger.start(&of("a", "p", "hash")).unwrap();
        ledger.start(&of("b", "p", "hash")).unwrap();
        let text = fs::read_to_string(ledger.path()).unwrap();
        let (first, second) = text.split_once('\n').unwrap();
        for wrong in [format!("{}\n{second}", &first[..20]), format!("{first}\nnothing\n")] {
            fs::write(ledger.path(), wrong).unwrap();
            assert!(ledger.read().is_err());
            assert!(ledger.start(&of("c", "p", "hash")).is_err());
        }
        fs::write(ledger.path(), [first.as_bytes(), b"\n\xff\xfe\n"].concat()).unwrap();
        assert!(matches!(ledger.read(), Err(EvidenceError::LedgerBroken { line: 2, .. })));
    }

    #[test]
    fn concurrent_runs_do_not_fork_the_chain() {
        let (_directory, ledger) = ledger();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let ledger = &ledger;
                scope.spawn(move || {
                    for run in 0..10 {
                        ledger.start(&of(&format!("{thread}-{run}"), "p", "hash")).unwrap();
                    }
                });
            }
        });
        assert_eq!(ledger.read().unwrap().len(), 40);
    }
}
