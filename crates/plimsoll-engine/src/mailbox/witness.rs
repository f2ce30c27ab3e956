//! A witness that is not the store: every durable commit that is acknowledged is written to a file or
//! pipe, where whoever watches keeps it when this process is killed.
//!
//! One record of 32 bytes per commit, little endian: database u32, page u32, slot u8, live u8, two
//! zero bytes, version u32, log position u64, and eight bytes `commit\r\n`. A write of so few bytes to
//! a pipe is atomic (POSIX, `PIPE_BUF`), so that a killed process leaves whole records.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use plimsoll_sys::SysError;
use plimsoll_workload::mailbox::{Commit, Expected, Witness};

use crate::EngineError;

const RECORD_BYTES: usize = 32;
const MARK: &[u8; 8] = b"commit\r\n";

/// Writes each acknowledged commit at once.
#[derive(Debug)]
pub struct CommitWitness(File);

impl CommitWitness {
    /// Opens the file or pipe.
    ///
    /// # Errors
    /// A path that can't be opened for appending.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let file = File::options().append(true).create(true).open(path);
        file.map(Self).map_err(|error| {
            EngineError::system("opening the witness", SysError::from_io("open", &error).at(path))
        })
    }
}

impl Witness for CommitWitness {
    fn acknowledged(&mut self, commit: &Commit) {
        // A watcher that went away no longer wants to know.
        let _ = self.0.write_all(&encode(commit));
    }
}

fn encode(commit: &Commit) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[0..4].copy_from_slice(&commit.database.to_le_bytes());
    record[4..8].copy_from_slice(&commit.page.to_le_bytes());
    record[8] = commit.slot;
    record[9] = u8::from(commit.live);
    record[12..16].copy_from_slice(&commit.version.to_le_bytes());
    record[16..24].copy_from_slice(&commit.lsn.to_le_bytes());
    record[24..].copy_from_slice(MARK);
    record
}

fn decode(record: &[u8; RECORD_BYTES]) -> Option<Commit> {
    let u32_at = |at: usize| {
        u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
    };
    (record[24..] == MARK[..]).then(|| Commit {
        database: u32_at(0),
        page: u32_at(4),
        slot: record[8],
        live: record[9] == 1,
        version: u32_at(12),
        lsn: u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32,
    })
}

/// Reads what a witness kept: the commits that must be there, and how many it saw.
///
/// # Errors
/// A file that can't be read, or that holds something else.
pub fn read_commits(path: &Path) -> Result<(Expected, u64), EngineError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| {
        EngineError::system("reading the witness", SysError::from_io("read", &error).at(path))
    })?;
    let (mut expected, mut count) = (Expected::default(), 0);
    for record in bytes.chunks_exact(RECORD_BYTES) {
        let commit = record.try_into().ok().and_then(decode).ok_or_else(|| {
            EngineError::Config(format!("{}: record {count} is no commit", path.display()))
        })?;
        expected.add(commit);
        count += 1;
    }
    Ok((expected, count))
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
        assert_eq!(decode(&encode(&commit)), Some(commit));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("commits");
        let mut witness = CommitWitness::open(&path).unwrap();
        witness.acknowledged(&commit);
        witness.acknowledged(&Commit { version: 10, ..commit });
        assert_eq!(read_commits(&path).unwrap().1, 2);
        std::fs::write(&path, [7; 32]).unwrap();
        assert!(read_commits(&path).is_err());
    }
}
