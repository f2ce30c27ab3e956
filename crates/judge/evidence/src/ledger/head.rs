//! `ledger.head`: the number of lines in the ledger, and the SHA-256 of the last line.
//!
//! In the chain, each line is protected by the next line, but the last line has no next line. The
//! head protects it: if the last line is changed or removed, the ledger no longer matches the head.
//! The head is replaced after each line, under the ledger's lock. If the disk is full, or if a
//! writer is killed before it has replaced the head, the head is older than the ledger. The head is
//! never newer than the ledger.
//!
//! Anyone who can change the ledger can also change the head. A signed statement makes such changes
//! detectable.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Link;

/// Message that is reported if the head is missing.
const TAKEN_AWAY: &str = "its head file is missing, so its last line is not protected";

/// Content of the head file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of lines in the ledger.
    pub lines: u64,
    /// SHA-256 of the last line of the ledger.
    pub last_sha256: String,
}

/// Result of comparing the ledger with its head, before a line was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadState {
    /// The ledger matched the head.
    Held,
    /// The ledger did not match the head. The text is the reason.
    Differed(String),
}

/// Returns the path of a ledger's head.
#[must_use]
pub fn path_of(ledger: &Path) -> PathBuf {
    ledger.with_extension("head")
}

impl Head {
    /// Returns the head of a chain; `None` if the chain is empty.
    #[must_use]
    pub fn of(chain: &[Link]) -> Option<Self> {
        let last = chain.last()?;
        Some(Self { lines: chain.len() as u64, last_sha256: last.sha256.clone() })
    }

    /// Returns the text of the head file. The head is valid only if its file contains exactly this
    /// text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}\n", self.lines, self.last_sha256)
    }

    /// Replaces the head file on disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, ledger: &Path) -> std::io::Result<()> {
        let path = path_of(ledger);
        let new = ledger.with_extension("head.new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(self.text().as_bytes())?;
            file.sync_data()?;
            fs::rename(&new, &path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn parse(text: &str) -> Option<Self> {
        let (lines, last) = text.split_once(' ')?;
        let head = Self { lines: lines.parse().ok()?, last_sha256: last.trim_end().to_owned() };
        (head.text() == text).then_some(head)
    }

    /// Checks that a chain matches the head. If it does not match, the error contains the line
    /// number and the reason.
    fn check(&self, chain: &[Link]) -> Result<(), (u64, String)> {
        let has = chain.len() as u64;
        if has < self.lines {
            let says = format!(
                "it was cut short: according to its head file, it should have {} lines, but it has \
                 {has}",
                self.lines
            );
            return Err((has + 1, says));
        }
        let last = usize::try_from(self.lines).ok().and_then(|n| chain.get(n.checked_sub(1)?));
        match last.is_some_and(|link| link.sha256 == self.last_sha256) {
            true => Ok(()),
            false => Err((
                self.lines,
                "its hash differs from the hash in the head: the line or the head was changed"
                    .into(),
            )),
        }
    }
}

/// State of the head file on disk.
#[derive(Debug)]
pub(super) enum StoredHead {
    Nothing,
    Head(Head),
    /// The file does not contain a head, or cannot be read.
    Other(String),
}

/// Reads the head. Callers must read the head before the ledger. If lines are appended between the
/// two reads, the head is only older than the ledger, which is permitted.
pub(super) fn read(ledger: &Path) -> StoredHead {
    match fs::read(path_of(ledger)) {
        Ok(bytes) => match std::str::from_utf8(&bytes).ok().and_then(Head::parse) {
            Some(head) => StoredHead::Head(head),
            None => StoredHead::Other("its head has the wrong format".into()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => StoredHead::Nothing,
        Err(error) => StoredHead::Other(format!("its head cannot be read: {error}")),
    }
}

/// Checks a chain against its head. Returns `None` if the ledger has never had a head.
pub(super) fn check(found: &StoredHead, chain: &[Link]) -> Option<Result<(), (u64, String)>> {
    match found {
        StoredHead::Head(head) => Some(head.check(chain)),
        StoredHead::Other(says) => Some(Err((0, says.clone()))),
        StoredHead::Nothing if chain.iter().any(|link| link.entry.head.is_some()) => {
            Some(Err((0, TAKEN_AWAY.to_owned())))
        }
        StoredHead::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ledger, Start};
    use super::*;
    use crate::EvidenceError;

    fn three() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path().join("ledger.jsonl"));
        ["a", "b", "c"].into_iter().for_each(|run| enter(&ledger, run));
        (directory, ledger)
    }

    fn enter(ledger: &Ledger, run_id: &str) {
        ledger.start(&Start { run_id, unix_ns: 1, ..Start::default() }).unwrap();
    }

    #[track_caller]
    fn says(ledger: &Ledger, at: u64, sentence: &str) {
        match ledger.read_chain() {
            Err(EvidenceError::LedgerBroken { line, what, .. }) => {
                assert_eq!(line, at, "{what}");
                assert!(what.contains(sentence), "{what}");
            }
            other => panic!("it is let pass: {other:?}"),
        }
    }

    #[test]
    fn detects_a_changed_or_removed_last_line() {
        let (_directory, ledger) = three();
        assert_eq!(ledger.read().unwrap().len(), 3);
        let text = fs::read_to_string(ledger.path()).unwrap();
        fs::write(ledger.path(), text.replace("\"c\"", "\"x\"")).unwrap();
        says(&ledger, 3, "its hash differs from the hash in the head");
        let two: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
        fs::write(ledger.path(), &two).unwrap();
        says(&ledger, 3, "according to its head file, it should have 3 lines, but it has 2");
        fs::remove_file(ledger.path()).unwrap();
        says(&ledger, 1, "according to its head file, it should have 3 lines, but it has 0");
        // The next line that is written records the mismatch, and the chain continues.
        fs::write(ledger.path(), &two).unwrap();
        enter(&ledger, "d");
        let entries = ledger.read().unwrap();
        assert_eq!(entries.len(), 3);
        let found = entries[2].head.clone();
        assert!(matches!(found, Some(HeadState::Differed(says)) if says.contains("cut short")));
    }

    #[test]
    fn reports_a_changed_or_removed_head() {
        let (_directory, ledger) = three();
        let path = path_of(ledger.path());
        let text = fs::read_to_string(&path).unwrap();
        for other in [
            text.replace('3', "03"),
            text.to_uppercase(),
            text.trim_end().into(),
            format!("{text}\n"),
        ] {
            fs::write(&path, &other).unwrap();
            assert!(ledger.read().is_err(), "{other:?}");
        }
        fs::remove_file(&path).unwrap();
        says(&ledger, 0, "its head file is missing");
        enter(&ledger, "d");
        assert_eq!(ledger.read().unwrap()[3].head, Some(HeadState::Differed(TAKEN_AWAY.into())));
    }

    #[test]
    fn a_stale_or_missing_head_is_not_an_error() {
        let (_directory, ledger) = three();
        let path = path_of(ledger.path());
        let chain = ledger.read_chain().unwrap();
        Head::of(&chain[..2]).unwrap().write(ledger.path()).unwrap();
        assert_eq!(ledger.read().unwrap().len(), 3);
        // A ledger without a head was written by an older version, or its first writer was killed
        // before it wrote the head.
        let first = fs::read_to_string(ledger.path()).unwrap().lines().next().unwrap().to_owned();
        fs::write(ledger.path(), format!("{first}\n")).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(ledger.read().unwrap()[0].head, None);
        enter(&ledger, "b");
        enter(&ledger, "c");
        let found: Vec<_> = ledger.read().unwrap().into_iter().map(|entry| entry.head).collect();
        assert_eq!(found, [None, None, Some(HeadState::Held)]);
    }
}
