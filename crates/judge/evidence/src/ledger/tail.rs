//! Divides the ledger file into complete lines and an incomplete last line. A writer that was
//! killed may have left such a line.
//!
//! If a writer is killed or the disk is full, part of a line can remain in the file. After a crash
//! of the host, the file can contain zeroes instead of this part. Such a torn tail does not count
//! as a line, because its writer never reported success. The next writer moves the torn tail to
//! another file and records its SHA-256 in the next line, so that the chain also protects the
//! removed bytes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Entry, Link};
use crate::EvidenceError;
use crate::seal::sha256_hex;

/// Record of the bytes that were removed from the end of the ledger. The record is part of the next
/// line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornBytes {
    /// Number of bytes that were removed.
    pub size_bytes: u64,
    /// SHA-256 of the removed bytes.
    pub sha256: String,
}

/// Torn tail: part of a line that a writer left in the ledger because it was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Number that the torn line would have, counted from 1.
    pub line: u64,
    /// Number of bytes in the torn tail.
    pub size_bytes: u64,
    /// File to which the bytes were moved; `None` while they are still in the ledger.
    pub moved_to: Option<PathBuf>,
}

impl TornTail {
    /// Returns the torn tail after these lines; `None` if there is no torn tail.
    pub(super) fn after(links: &[Link], tail: &[u8]) -> Option<Self> {
        let (line, size_bytes) = (links.len() as u64 + 1, tail.len() as u64);
        (size_bytes > 0).then_some(Self { line, size_bytes, moved_to: None })
    }
}

/// Divides the bytes of the ledger into whole lines and a torn tail. The torn tail may be empty. If
/// a last line lacks only its line feed, it counts as whole.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, tail) = bytes.split_at(whole);
    if !tail.is_empty() {
        let entry = serde_json::from_slice::<Entry>(tail);
        return if entry.is_ok() { (bytes, &[]) } else { (lines, tail) };
    }
    // Zeroes in the last line show that its blocks were never written to the disk.
    let last = lines.len().saturating_sub(1);
    let start = lines[..last].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if lines[start..].contains(&0) { lines.split_at(start) } else { (lines, &[]) }
}

/// Writes the torn bytes to a file in the directory of the ledger.
pub(super) fn move_torn_tail(
    ledger: &Path,
    line: u64,
    tail: &[u8],
) -> Result<PathBuf, EvidenceError> {
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
                    // The partial copy can be removed, because the ledger still contains all bytes
                    // of the torn tail.
                    let _ = fs::remove_file(&path);
                    EvidenceError::io("move the torn end of the ledger to", &path, error)
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(EvidenceError::io("move the torn end of the ledger to", &path, error));
            }
        }
    }
    let error = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
    Err(EvidenceError::io("move the torn end of the ledger to a file next to", ledger, error))
}

impl TornBytes {
    /// Creates the record of the removed bytes.
    pub(super) fn from_bytes(tail: &[u8]) -> Self {
        Self { size_bytes: tail.len() as u64, sha256: sha256_hex(tail) }
    }
}
