//! A witness outside the store: a file or pipe to which each acknowledged durable commit is
//! written. If this process is killed, the recorded commits are preserved.
//!
//! A record has 40 bytes, in little-endian order. Its fields are: database u32, page u32, slot u8,
//! live u8, two zero bytes, version u32, log position u64, store identity u64, and the eight bytes
//! `commit2\n`. A write of this size to a pipe is atomic (POSIX, `PIPE_BUF`). A killed process has
//! therefore written only whole records to a pipe.
//!
//! Several runs may write to one file. A check reads only the records of its own store. Earlier
//! versions of Plimsoll wrote records of 32 bytes, which contain no store identity and end with
//! `commit\r\n`. Such records are treated as records of any store.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use plimsoll_sys::SysError;
use plimsoll_workload::mailbox::{Commit, ExpectedCommits, Witness};

use crate::EngineError;
use crate::open_target::resolve::open_for_appending;
use crate::work_dir::failed;

const RECORD_BYTES: usize = 40;
const MARK: &[u8; 8] = b"commit2\n";
const OLD_RECORD_BYTES: usize = 32;
const OLD_MARK: &[u8; 8] = b"commit\r\n";

/// Appends each commit to the witness as soon as the target has acknowledged it.
#[derive(Debug)]
pub struct CommitWitness {
    file: File,
    store_id: u64,
}

impl CommitWitness {
    /// Opens the file or pipe for the commits of one store.
    ///
    /// # Errors
    /// Fails if the path cannot be opened for appending.
    pub fn open(path: &Path, store_id: u64) -> Result<Self, EngineError> {
        let opened = open_for_appending(path).map(File::from);
        opened
            .map(|file| Self { file, store_id })
            .map_err(|error| failed("opening the witness", "open", path, &error))
    }
}

impl Witness for CommitWitness {
    fn acknowledged(&mut self, commit: &Commit) {
        // If the reader has closed the pipe, this is not an error.
        let _ = self.file.write_all(&encode(commit, self.store_id));
    }
}

fn encode(commit: &Commit, store_id: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[0..4].copy_from_slice(&commit.database.to_le_bytes());
    record[4..8].copy_from_slice(&commit.page.to_le_bytes());
    record[8] = commit.slot;
    record[9] = u8::from(commit.live);
    record[12..16].copy_from_slice(&commit.version.to_le_bytes());
    record[16..24].copy_from_slice(&commit.lsn.to_le_bytes());
    record[24..32].copy_from_slice(&store_id.to_le_bytes());
    record[32..].copy_from_slice(MARK);
    record
}

/// Decodes the commit at the start of `bytes`. Returns the commit and the remaining bytes. Also
/// returns the identity of the commit's store, if the record contains it.
fn decode(bytes: &[u8]) -> Option<(Commit, Option<u64>, &[u8])> {
    let u32_at =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let (store_id, size) = if bytes.get(24..OLD_RECORD_BYTES)? == OLD_MARK {
        (None, OLD_RECORD_BYTES)
    } else if bytes.get(32..RECORD_BYTES)? == MARK {
        (Some(u64_at(24)), RECORD_BYTES)
    } else {
        return None;
    };
    let commit = Commit {
        database: u32_at(0),
        page: u32_at(4),
        slot: bytes[8],
        live: bytes[9] == 1,
        version: u32_at(12),
        lsn: u64_at(16),
    };
    Some((commit, store_id, &bytes[size..]))
}

/// Commits that were read from the file of a witness.
#[derive(Debug, Default)]
pub struct WitnessedCommits {
    /// Commits that must be present in the store.
    pub expected: ExpectedCommits,
    /// Number of commits in the file that belong to this store.
    pub count: u64,
    /// Number of commits in the file that belong to other stores. The check skips them.
    pub foreign_count: u64,
}

/// Reads the commits of store `store_id` from the file of a witness.
///
/// # Errors
/// Fails if the file cannot be read, or if it contains anything that is not a commit.
pub fn read_commits(path: &Path, store_id: u64) -> Result<WitnessedCommits, EngineError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| {
        EngineError::system("reading the witness", SysError::from_io("read", &error).at(path))
    })?;
    let mut witnessed = WitnessedCommits::default();
    let mut rest = &bytes[..];
    // If a process was killed while it wrote to the file, the last record may be incomplete.
    while rest.len() >= RECORD_BYTES || decode(rest).is_some() {
        let Some((commit, of, after)) = decode(rest) else {
            let (path, at) = (path.display(), bytes.len() - rest.len());
            return Err(EngineError::Config(format!(
                "{path}: there is no valid commit record at byte {at}"
            )));
        };
        rest = after;
        if of.is_some_and(|id| id != store_id) {
            witnessed.foreign_count += 1;
        } else {
            witnessed.expected.add(commit);
            witnessed.count += 1;
        }
    }
    Ok(witnessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let commit = Commit {
            database: 3,
            page: 70_000,
            slot: 15,
            version: 9,
            live: true,
            lsn: 1 << 40 | 7,
        };
        let record = encode(&commit, 77);
        assert_eq!(decode(&record), Some((commit, Some(77), &[][..])));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("commits");
        let mut witness = CommitWitness::open(&path, 77).unwrap();
        witness.acknowledged(&commit);
        witness.acknowledged(&Commit { version: 10, ..commit });
        CommitWitness::open(&path, 78).unwrap().acknowledged(&commit);
        let witnessed = read_commits(&path, 77).unwrap();
        assert_eq!((witnessed.count, witnessed.foreign_count), (2, 1));
        // This file contains records in the old format, and the last record is incomplete.
        let mut old = record[..32].to_vec();
        old[24..].copy_from_slice(OLD_MARK);
        old.extend(&record[..20]);
        std::fs::write(&path, old).unwrap();
        assert_eq!(read_commits(&path, 5).unwrap().count, 1);
        std::fs::write(&path, [7; 40]).unwrap();
        assert!(read_commits(&path, 77).is_err());
    }
}
