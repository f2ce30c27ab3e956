//! The ledger: every run on this machine in the order started, aborted ones too.
//!
//! A text file of JSON lines. Each line holds the SHA-256 of the one before, so that a line cannot
//! be taken out or changed without breaking all that follow. A run appends a line when it starts
//! and another when it ends; a run that was killed has a start without an end. Appending takes an
//! exclusive lock, so that runs at the same time do not fork the chain.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::EvidenceError;
use crate::run::LedgerPosition;
use crate::seal::sha256_hex;

/// What a line says of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run was started.
    Started {
        /// Name of the plan.
        name: String,
        /// SHA-256 of the resolved plan.
        plan_sha256: String,
        /// The experiment that it belongs to; `None`: it stands alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        experiment: Option<String>,
    },
    /// The run ended, with the seal of its bundle.
    Ended {
        /// How, as in `run.json`.
        end: String,
        /// The verdict in capitals.
        verdict: String,
        /// SHA-256 of the bundle's `SHA256SUMS`.
        seal_sha256: String,
    },
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Line number, from 1.
    pub position: u64,
    /// SHA-256 of the line before without its line feed; of nothing for the first.
    pub previous_sha256: String,
    /// The run.
    pub run_id: String,
    /// Wall clock, nanoseconds since 1970.
    pub unix_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The ledger of one machine.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger at `path`; it need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enters the start of a run.
    ///
    /// # Errors
    /// A ledger that cannot be written, or whose chain is broken.
    pub fn start(
        &self,
        run_id: &str,
        name: &str,
        plan_sha256: &str,
        unix_ns: u64,
    ) -> Result<LedgerPosition, EvidenceError> {
        self.start_in(run_id, name, plan_sha256, unix_ns, None)
    }

    /// Enters the start of a run of an experiment.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in(
        &self,
        run_id: &str,
        name: &str,
        plan_sha256: &str,
        unix_ns: u64,
        experiment: Option<&str>,
    ) -> Result<LedgerPosition, EvidenceError> {
        let event = Event::Started {
            name: name.to_owned(),
            plan_sha256: plan_sha256.to_owned(),
            experiment: experiment.map(str::to_owned),
        };
        let (entry, earlier) = self.append(run_id, unix_ns, event)?;
        let same_plan: Vec<&str> = earlier
            .iter()
            .filter(
                |e| matches!(&e.event, Event::Started { plan_sha256: p, .. } if p == plan_sha256),
            )
            .map(|e| e.run_id.as_str())
            .collect();
        let completed = same_plan.iter().filter(|&&run| {
            earlier.iter().any(|e| {
                e.run_id == run
                    && matches!(&e.event, Event::Ended { end, .. } if end == "completed")
            })
        });
        let completed = completed.count();
        Ok(LedgerPosition {
            position: entry.position,
            previous_sha256: entry.previous_sha256,
            earlier_runs_of_plan: same_plan.len() as u64,
            earlier_runs_not_completed: (same_plan.len() - completed) as u64,
        })
    }

    /// Enters the end of a run.
    ///
    /// # Errors
    /// As [`Ledger::start`].
    pub fn end(
        &self,
        run_id: &str,
        unix_ns: u64,
        end: &str,
        verdict: &str,
        seal_sha256: &str,
    ) -> Result<(), EvidenceError> {
        let event = Event::Ended {
            end: end.to_owned(),
            verdict: verdict.to_owned(),
            seal_sha256: seal_sha256.to_owned(),
        };
        self.append(run_id, unix_ns, event).map(|_| ())
    }

    /// Reads the whole ledger and checks its chain.
    ///
    /// # Errors
    /// [`EvidenceError::LedgerBroken`] with the first line that does not fit.
    pub fn read(&self) -> Result<Vec<Entry>, EvidenceError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => self.parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(EvidenceError::io("read", &self.path, error)),
        }
    }

    fn append(
        &self,
        run_id: &str,
        unix_ns: u64,
        event: Event,
    ) -> Result<(Entry, Vec<Entry>), EvidenceError> {
        let io = |doing| move |error| EvidenceError::io(doing, &self.path, error);
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(io("create the directory of"))?;
        }
        let mut file = self.open().map_err(io("open"))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| io("lock")(e.into()))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io("read"))?;
        let earlier = self.parse(&text)?;
        let last_line = text.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        let entry = Entry {
            position: earlier.len() as u64 + 1,
            previous_sha256: sha256_hex(last_line.as_bytes()),
            run_id: run_id.to_owned(),
            unix_ns,
            event,
        };
        let mut line = serde_json::to_string(&entry).map_err(|e| io("write")(e.into()))?;
        line.push('\n');
        file.seek(SeekFrom::End(0)).map_err(io("write"))?;
        file.write_all(line.as_bytes()).map_err(io("write"))?;
        file.sync_data().map_err(io("write"))?;
        Ok((entry, earlier))
    }

    fn open(&self) -> std::io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).open(&self.path)
    }

    fn parse(&self, text: &str) -> Result<Vec<Entry>, EvidenceError> {
        let broken = |line, what: String| EvidenceError::LedgerBroken {
            path: self.path.clone(),
            line,
            what,
        };
        let mut entries: Vec<Entry> = Vec::new();
        let mut previous = "";
        for (index, line) in text.lines().enumerate() {
            let number = index as u64 + 1;
            let entry: Entry = serde_json::from_str(line)
                .map_err(|error| broken(number, format!("it does not parse: {error}")))?;
            if entry.position != number {
                return Err(broken(number, format!("it says that it is line {}", entry.position)));
            }
            if entry.previous_sha256 != sha256_hex(previous.as_bytes()) {
                return Err(broken(number, "the line before it was changed or taken out".into()));
            }
            previous = line;
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path().join("state/ledger.jsonl"));
        (directory, ledger)
    }

    #[test]
    fn counts_earlier_runs_of_the_same_plan_and_those_that_did_not_complete() {
        let (_directory, ledger) = ledger();
        ledger.start("a", "p", "hash", 1).unwrap();
        ledger.end("a", 2, "completed", "PASS", "seal").unwrap();
        ledger.start("b", "p", "hash", 3).unwrap();
        ledger.start("c", "q", "other", 4).unwrap();
        let position = ledger.start("d", "p", "hash", 5).unwrap();
        assert_eq!(position.position, 5);
        assert_eq!(position.earlier_runs_of_plan, 2);
        assert_eq!(position.earlier_runs_not_completed, 1);
        assert_eq!(ledger.read().unwrap().len(), 5);
    }

    #[test]
    fn a_line_taken_out_or_changed_breaks_the_chain() {
        let (_directory, ledger) = ledger();
        for run in ["a", "b", "c"] {
            ledger.start(run, "p", "hash", 1).unwrap();
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
        assert!(ledger.start("d", "p", "hash", 9).is_err());
    }

    #[test]
    fn runs_at_the_same_time_do_not_fork_the_chain() {
        let (_directory, ledger) = ledger();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let ledger = &ledger;
                scope.spawn(move || {
                    for run in 0..10 {
                        ledger.start(&format!("{thread}-{run}"), "p", "hash", 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(ledger.read().unwrap().len(), 40);
    }
}
