//! The end of the ledger's file: its whole lines, and what a writer that was cut off left after them.
//!
//! A writer that is killed, or that meets a full disk, can leave part of a line; after a crash of the
//! host a file system can show zeroes in its place. Such a tail is no entry: nobody was told of it. It is
//! moved to a file of its own, and the next entry carries its SHA-256, so that the chain also holds what
//! was taken off its end.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Entry, Link};
use crate::EvidenceError;
use crate::seal::sha256_hex;

/// Bytes that were taken off the end of the ledger, as the entry after them records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAside {
    /// How many bytes.
    pub size_bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

/// A torn tail: part of a line that a run was cut off from writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Its line number, from 1.
    pub line: u64,
    /// How many bytes of it there are.
    pub size_bytes: u64,
    /// Where the bytes lie now; `None` while they are still at the end of the ledger.
    pub moved_to: Option<PathBuf>,
}

impl TornTail {
    /// What was left after these lines; `None`: nothing.
    pub(super) fn left(links: &[Link], tail: &[u8]) -> Option<Self> {
        let (line, size_bytes) = (links.len() as u64 + 1, tail.len() as u64);
        (size_bytes > 0).then_some(Self { line, size_bytes, moved_to: None })
    }
}

/// Splits the ledger's bytes into whole lines and a torn tail, which is empty where there is none. A last
/// entry that lacks only its line feed is whole.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, tail) = bytes.split_at(whole);
    if !tail.is_empty() {
        let entry = serde_json::from_slice::<Entry>(tail);
        return if entry.is_ok() { (bytes, &[]) } else { (lines, tail) };
    }
    // Zeroes in the last line are blocks that never reached the disk.
    let last = lines.len().saturating_sub(1);
    let start = lines[..last].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if lines[start..].contains(&0) { lines.split_at(start) } else { (lines, &[]) }
}

/// Writes the torn bytes to a file beside the ledger.
pub(super) fn put_aside(ledger: &Path, line: u64, tail: &[u8]) -> Result<PathBuf, EvidenceError> {
    let name = ledger.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let numbered = |number: u32| match number {
        0 => format!("{name}.torn-{line}"),
        again => format!("{name}.torn-{line}.{again}"),
    };
    for number in 0..1000 {
        let path = ledger.with_file_name(numbered(number));
        match File::create_new(&path) {
            Ok(mut file) => {
                let written = file.write_all(tail).and_then(|()| file.sync_all());
                return written.map(|()| path.clone()).map_err(|error| {
                    // A part of a part is worth nothing; the ledger still has all of it.
                    let _ = fs::remove_file(&path);
                    EvidenceError::io("put aside the torn end of the ledger in", &path, error)
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(EvidenceError::io(
                    "put aside the torn end of the ledger in",
                    &path,
                    error,
                ));
            }
        }
    }
    let error = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
    Err(EvidenceError::io("put aside the torn end of the ledger beside", ledger, error))
}

impl PutAside {
    /// Of these bytes.
    pub(super) fn of(tail: &[u8]) -> Self {
        Self { size_bytes: tail.len() as u64, sha256: sha256_hex(tail) }
    }
}
