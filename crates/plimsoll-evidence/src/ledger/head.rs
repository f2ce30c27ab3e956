//! `ledger.head`: how many lines the ledger has, and the SHA-256 of the last.
//!
//! The chain guards each line by the one after it, so that nothing in it guards the last. The head does: a last
//! line that was changed or taken off no longer is what the head says. It is replaced after each line, under the
//! ledger's lock. A writer that was cut off between the two, or that met a full disk, leaves a head that is
//! behind, and never one that is ahead.
//!
//! Whoever can write the ledger can write the head too. What a signed statement adds is that its owner can't.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Link;

/// What is said of a head that should be there and is not.
const TAKEN_AWAY: &str = "its head was taken away: nothing guards its last line";

/// What the head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Lines.
    pub lines: u64,
    /// SHA-256 of the last of them.
    pub last_sha256: String,
}

/// How a line's writer found the head, before it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadFound {
    /// It was there, and the ledger was what it said.
    Held,
    /// The ledger was not what the head said: a sentence.
    Differed(String),
}

/// Where the head of a ledger lies.
#[must_use]
pub fn path_of(ledger: &Path) -> PathBuf {
    ledger.with_extension("head")
}

impl Head {
    /// What the head of this chain has to say; `None`: it is empty.
    #[must_use]
    pub fn of(chain: &[Link]) -> Option<Self> {
        let last = chain.last()?;
        Some(Self { lines: chain.len() as u64, last_sha256: last.sha256.clone() })
    }

    /// Its text: one form only.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}\n", self.lines, self.last_sha256)
    }

    /// Puts it in the place of the one before.
    ///
    /// # Errors
    /// A file that can't be written.
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

    /// Whether a chain is what the head says: at the number of the line that is not, and why not.
    fn holds_for(&self, chain: &[Link]) -> Result<(), (u64, String)> {
        let has = chain.len() as u64;
        if has < self.lines {
            let says =
                format!("it was cut short: its head says {} lines, and it has {has}", self.lines);
            return Err((has + 1, says));
        }
        let last = usize::try_from(self.lines).ok().and_then(|n| chain.get(n.checked_sub(1)?));
        match last.is_some_and(|link| link.sha256 == self.last_sha256) {
            true => Ok(()),
            false => {
                Err((self.lines, "its head has another line there: one of both was changed".into()))
            }
        }
    }
}

/// What lies where the head belongs.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Head(Head),
    /// Something else, or what can't be read.
    Other(String),
}

/// Reads the head. It is read before the ledger: what is appended meanwhile then leaves it behind.
pub(super) fn find(ledger: &Path) -> Found {
    match fs::read(path_of(ledger)) {
        Ok(bytes) => match std::str::from_utf8(&bytes).ok().and_then(Head::parse) {
            Some(head) => Found::Head(head),
            None => Found::Other("its head is not in the form in which it is written".into()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::Nothing,
        Err(error) => Found::Other(format!("its head can't be read: {error}")),
    }
}

/// Holds a chain against what lies where its head belongs. `None`: it has no head, and never had one.
pub(super) fn hold(found: &Found, chain: &[Link]) -> Option<Result<(), (u64, String)>> {
    match found {
        Found::Head(head) => Some(head.holds_for(chain)),
        Found::Other(says) => Some(Err((0, says.clone()))),
        Found::Nothing if chain.iter().any(|link| link.entry.head.is_some()) => {
            Some(Err((0, TAKEN_AWAY.to_owned())))
        }
        Found::Nothing => None,
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
    fn the_last_line_can_not_be_changed_or_taken_off() {
        let (_directory, ledger) = three();
        assert_eq!(ledger.read().unwrap().len(), 3);
        let text = fs::read_to_string(ledger.path()).unwrap();
        fs::write(ledger.path(), text.replace("\"c\"", "\"x\"")).unwrap();
        says(&ledger, 3, "its head has another line");
        let two: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
        fs::write(ledger.path(), &two).unwrap();
        says(&ledger, 3, "cut short: its head says 3 lines, and it has 2");
        fs::remove_file(ledger.path()).unwrap();
        says(&ledger, 1, "cut short: its head says 3 lines, and it has 0");
        // The next line says what its writer found, and the chain goes on.
        fs::write(ledger.path(), &two).unwrap();
        enter(&ledger, "d");
        let entries = ledger.read().unwrap();
        assert_eq!(entries.len(), 3);
        let found = entries[2].head.clone();
        assert!(matches!(found, Some(HeadFound::Differed(says)) if says.contains("cut short")));
    }

    #[test]
    fn a_head_that_was_changed_or_taken_away_is_told() {
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
        says(&ledger, 0, "taken away");
        enter(&ledger, "d");
        assert_eq!(ledger.read().unwrap()[3].head, Some(HeadFound::Differed(TAKEN_AWAY.into())));
    }

    #[test]
    fn a_head_that_is_behind_or_not_there_yet_accuses_nobody() {
        let (_directory, ledger) = three();
        let path = path_of(ledger.path());
        let chain = ledger.read_chain().unwrap();
        Head::of(&chain[..2]).unwrap().write(ledger.path()).unwrap();
        assert_eq!(ledger.read().unwrap().len(), 3);
        // A ledger of an older version, or one whose first writer was cut off.
        let first = fs::read_to_string(ledger.path()).unwrap().lines().next().unwrap().to_owned();
        fs::write(ledger.path(), format!("{first}\n")).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(ledger.read().unwrap()[0].head, None);
        enter(&ledger, "b");
        enter(&ledger, "c");
        let found: Vec<_> = ledger.read().unwrap().into_iter().map(|entry| entry.head).collect();
        assert_eq!(found, [None, None, Some(HeadFound::Held)]);
    }
}
