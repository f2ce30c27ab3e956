//! The lock that keeps runs apart: a file in each directory that a plan names.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use rustix::fs::{FlockOperation, flock};

use super::sys;
use crate::EngineError;

/// Name of the lock file.
pub(crate) const FILE: &str = ".plimsoll.lock";

/// The locks of the target's directories, with the files that hold them.
#[derive(Debug)]
pub(crate) struct Locks {
    held: Vec<(PathBuf, OwnedFd)>,
    /// Whether the files were made for this, and go with it.
    ours: bool,
}

impl Drop for Locks {
    fn drop(&mut self) {
        if !self.ours {
            return;
        }
        for (path, _) in &self.held {
            // Removed while the lock is held; a run that waits for it looks at the name again.
            let _ = fs::remove_file(path);
        }
    }
}

/// Locks directories for a run, each once, whatever names it has.
pub(crate) fn lock_all(directories: &[PathBuf]) -> Result<Locks, EngineError> {
    let mut locks = Locks { held: Vec::new(), ours: true };
    for directory in each_once(directories) {
        locks.held.push(lock(&directory)?);
    }
    Ok(locks)
}

/// Locks directories for reading: where no lock file is, no run is, and none is made. A file system that
/// is mounted read-only is read so too.
pub(crate) fn lock_shared(directories: &[PathBuf]) -> Result<Locks, EngineError> {
    let mut locks = Locks { held: Vec::new(), ours: false };
    for directory in each_once(directories) {
        let path = directory.join(FILE);
        let Ok(file) = open(&path, false) else { continue };
        take(&file, &path, FlockOperation::NonBlockingLockShared)?;
        locks.held.push((path, file.into()));
    }
    Ok(locks)
}

/// The directories in one order for all runs, one of each that is there.
fn each_once(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<(Option<(u64, u64)>, PathBuf)> = directories
        .iter()
        .map(|path| (fs::metadata(path).ok().map(|m| (m.dev(), m.ino())), path.clone()))
        .collect();
    all.sort();
    all.dedup_by(|a, b| if a.0.is_some() { a.0 == b.0 } else { a.1 == b.1 });
    all.into_iter().map(|(_, path)| path).collect()
}

/// Opens the lock file: nothing else of that name, and no link.
fn open(path: &Path, create: bool) -> std::io::Result<fs::File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = fs::OpenOptions::new()
        .read(true)
        .write(create)
        .create(create)
        .truncate(false)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file"))
}

fn take(file: &fs::File, path: &Path, how: FlockOperation) -> Result<(), EngineError> {
    flock(file, how).map_err(|errno| match errno {
        rustix::io::Errno::WOULDBLOCK => EngineError::InUse { path: path.to_path_buf() },
        _ => {
            let error = SysError::new("flock", errno.raw_os_error()).at(path);
            EngineError::system("locking a target", error)
        }
    })
}

fn lock(directory: &Path) -> Result<(PathBuf, OwnedFd), EngineError> {
    let path = directory.join(FILE);
    loop {
        let file = open(&path, true)
            .map_err(|error| EngineError::system("locking a target", sys("open", &path, &error)))?;
        take(&file, &path, FlockOperation::NonBlockingLockExclusive)?;
        // Whoever held it may have removed the name before we had the lock.
        let named = fs::symlink_metadata(&path).map(|m| (m.dev(), m.ino())).ok();
        let held = file.metadata().map(|m| (m.dev(), m.ino())).ok();
        if named.is_some() && named == held {
            return Ok((path, file.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_by_two_names_is_locked_once() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", root.path().join("again")).unwrap();
        let twice = [root.path().to_path_buf(), root.path().join("again")];
        let locks = lock_all(&twice).unwrap();
        assert!(matches!(lock_all(&twice), Err(EngineError::InUse { .. })));
        assert!(matches!(lock_shared(&twice), Err(EngineError::InUse { .. })));
        drop(locks);
        assert!(!root.path().join(FILE).exists());
    }

    #[test]
    fn reading_makes_no_lock_file_and_keeps_a_run_out_where_there_is_one() {
        let root = tempfile::tempdir().unwrap();
        let directories = [root.path().to_path_buf()];
        drop(lock_shared(&directories).unwrap());
        assert!(!root.path().join(FILE).exists());
        fs::write(root.path().join(FILE), "").unwrap();
        let reading = lock_shared(&directories).unwrap();
        assert!(lock_shared(&directories).is_ok(), "several may read");
        assert!(matches!(lock_all(&directories), Err(EngineError::InUse { .. })));
        drop(reading);
        assert!(lock_all(&directories).is_ok());
    }

    #[test]
    fn what_is_no_file_is_no_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        std::os::unix::fs::symlink("/nowhere/else", &path).unwrap();
        assert!(lock_all(&[root.path().to_path_buf()]).is_err());
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        assert!(lock_all(&[root.path().to_path_buf()]).is_err());
    }
}
