//! A witness outside the store: a file or pipe to which each acknowledged durable commit is
//! written. If this process is killed, the recorded commits are preserved.
//!
//! A record has 40 bytes, in little-endian order. Its fields are: database u32, page u32, slot u8,
//! live u8, two zero bytes, version u32, log position u64, store identity u64, and the eight bytes
//! `commit2\n`. A write of this size to a pipe is atomic (POSIX, `PIPE_BUF`). A killed process has
//! therefore written only whole records to a pipe.
//!
//! Several runs may write to one file. A check reads only the records of its own store. If a write
//! fails, for example because the disk of the witness is full, the file may end with a part of a
//! record. The run then writes no further record and ends, and no later run appends to this file.
//!
//! Earlier versions of Plimsoll wrote records of 32 bytes, which contain no store identity and end
//! with `commit\r\n`. Such records are treated as records of any store.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_sys::SysError;
use plimsoll_workload::mailbox::{Commit, ExpectedCommits, Witness};
use rustix::fs::OFlags;

use crate::open_target::openat::reopen;
use crate::open_target::resolve::open_for_appending;
use crate::work_dir::failed;
use crate::{EngineError, blocking_call};

const RECORD_BYTES: usize = 40;
const MARK: &[u8; 8] = b"commit2\n";
const OLD_RECORD_BYTES: usize = 32;
const OLD_MARK: &[u8; 8] = b"commit\r\n";

/// Time limit for the sync of the witness at the end of the load.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);
const SYNC_TIMEOUT_AFTER_STOP: Duration = Duration::from_secs(10);

/// Appends each commit to the witness as soon as the target has acknowledged it. The threads of a
/// run share the file, so that no thread appends to it after the failed write of another thread.
#[derive(Clone, Debug)]
pub struct CommitWitness {
    store_id: u64,
    output: Arc<Output>,
}

/// File or pipe of a witness.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    /// `None` after a write failed, or after the reader closed the pipe.
    file: Mutex<Option<File>>,
    /// First failure. It can be read while a thread waits in a write.
    failure: OnceLock<String>,
}

impl CommitWitness {
    /// Opens the file or pipe for the commits of one store.
    ///
    /// # Errors
    /// Fails if the path cannot be opened for appending, or if the file ends with a part of a
    /// record.
    pub fn open(path: &Path, store_id: u64) -> Result<Self, EngineError> {
        let file = open_for_appending(path).map(File::from);
        let file = file.map_err(|error| failed("opening the witness", "open", path, &error))?;
        if !ends_with_record(&file) {
            let path = path.display();
            return Err(EngineError::Config(format!(
                "{path} does not end with a whole commit record, so a witness cannot be appended \
                 to it; specify a new file"
            )));
        }
        let (path, file) = (path.to_owned(), Mutex::new(Some(file)));
        Ok(Self { store_id, output: Arc::new(Output { path, file, failure: OnceLock::new() }) })
    }

    /// Returns the error of the first write that failed; `None` if each commit was recorded.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.output.failure.get().map(String::as_str)
    }

    /// Syncs the file after the last commit. Some file systems (such as NFS) report a failed write
    /// only then.
    pub fn sync(&self) {
        // If the file is locked, an abandoned thread still waits in a write.
        let file = match self.output.file.try_lock().as_deref() {
            // A pipe cannot be synced.
            Ok(Some(file)) if file.metadata().is_ok_and(|is| is.is_file()) => file.try_clone(),
            _ => return,
        };
        let (what, sync) = (self.output.path.display().to_string(), move || file?.sync_data());
        match blocking_call::run_with_limits(&what, SYNC_TIMEOUT, SYNC_TIMEOUT_AFTER_STOP, sync) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.output.fail(&error),
            Err(error) => self.output.fail(&io::Error::other(error.to_string())),
        }
    }
}

impl Output {
    fn fail(&self, error: &io::Error) {
        let error = failed("writing the witness", "write", &self.path, error);
        let says = format!(
            "{error}; the witness failed, not the target: commits after this failure are not \
             recorded"
        );
        self.failure.get_or_init(|| says);
    }
}

/// Returns false if a regular file contains data that does not end with a commit record. A file
/// that this user may not read is not checked.
fn ends_with_record(file: &File) -> bool {
    let is_file = |found: &Metadata| found.is_file() && found.len() > 0;
    let Some(found) = file.metadata().ok().filter(is_file) else { return true };
    let Ok(read) = reopen(file.as_fd(), OFlags::RDONLY).map(File::from) else { return true };
    let mut mark = [0; MARK.len()];
    let at = found.len().saturating_sub(MARK.len() as u64);
    read.read_exact_at(&mut mark, at).is_ok_and(|()| mark == *MARK || mark == *OLD_MARK)
}

impl Witness for CommitWitness {
    fn acknowledged(&mut self, commit: &Commit) {
        let mut file = self.output.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = file.as_mut() else { return };
        if let Err(error) = open.write_all(&encode(commit, self.store_id)) {
            // A reader may close its pipe as soon as it has received the commits that it needs, for
            // example before it kills the run. It knows which commits it has received.
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.output.fail(&error);
            }
            *file = None;
        }
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
    use std::os::fd::OwnedFd;

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
        witness.sync();
        assert_eq!(witness.failure(), None);
        CommitWitness::open(&path, 78).unwrap().acknowledged(&commit);
        let witnessed = read_commits(&path, 77).unwrap();
        assert_eq!((witnessed.count, witnessed.foreign_count), (2, 1));
        // This file contains records in the old format, and the last record is incomplete.
        let mut old = record[..32].to_vec();
        old[24..].copy_from_slice(OLD_MARK);
        old.extend(&record[..20]);
        std::fs::write(&path, old).unwrap();
        assert_eq!(read_commits(&path, 5).unwrap().count, 1);
        // A record after the incomplete record would make the file unreadable.
        let error = CommitWitness::open(&path, 5).unwrap_err().to_string();
        assert!(error.contains("does not end with a whole commit record"), "{error}");
        std::fs::write(&path, [7; 40]).unwrap();
        assert!(read_commits(&path, 77).is_err());
    }

    #[test]
    fn a_commit_that_cannot_be_recorded_is_a_failure_unless_the_reader_has_left() {
        let commit = Commit { database: 0, page: 0, slot: 0, version: 1, live: true, lsn: 1 };
        let witness = CommitWitness::open(Path::new("/dev/full"), 1).unwrap();
        let mut of_thread = witness.clone();
        assert_eq!(witness.failure(), None);
        of_thread.acknowledged(&commit);
        of_thread.acknowledged(&commit);
        let failure = witness.failure().unwrap();
        assert!(failure.starts_with("writing the witness: "), "{failure}");
        assert!(failure.contains("/dev/full: No space left on device"), "{failure}");
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut witness = CommitWitness::open(Path::new("/dev/null"), 1).unwrap();
        *witness.output.file.lock().unwrap() = Some(File::from(OwnedFd::from(writer)));
        witness.acknowledged(&commit);
        witness.sync();
        assert_eq!(witness.failure(), None);
    }
}
