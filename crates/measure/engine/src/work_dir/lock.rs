//! Lock that prevents two runs from using one target at the same time. The lock is a file in each
//! directory of a plan.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, fstat, statat, unlinkat};
use rustix::io::Errno;

use crate::EngineError;
use crate::open_target::handles::TargetDirectory;
use crate::open_target::openat::{existing_file, open_or_create_file};

pub(crate) const FILE: &str = ".plimsoll.lock";

/// Locks on the directories of a target. Each lock is an open lock file.
#[derive(Debug)]
pub(crate) struct Locks {
    held: Vec<(TargetDirectory, OwnedFd)>,
    /// True if this process created the lock files. It then removes them when this value is
    /// dropped.
    created: bool,
}

impl Drop for Locks {
    fn drop(&mut self) {
        if !self.created {
            return;
        }
        for (directory, _) in &self.held {
            // The file is removed while this process still holds the lock. Another run may then
            // acquire the lock of the removed file. That run checks the name again and finds that
            // the file was removed.
            let _ = unlinkat(&directory.fd, FILE, AtFlags::empty());
        }
    }
}

/// Locks directories for a run. If several paths refer to the same directory, the directory is
/// locked once.
pub(crate) fn lock_all(directories: &[TargetDirectory]) -> Result<Locks, EngineError> {
    let mut locks = Locks { held: Vec::new(), created: true };
    for directory in sort_unique(directories.to_vec()) {
        let file = lock(&directory)?;
        locks.held.push((directory, file));
    }
    Ok(locks)
}

/// Locks directories for reading. If a lock file is missing, no run is active. This function
/// therefore creates no lock file, and also works on a read-only file system.
pub(crate) fn lock_shared(directories: &[PathBuf]) -> Result<Locks, EngineError> {
    let mut locks = Locks { held: Vec::new(), created: false };
    let open = directories.iter().filter_map(|path| TargetDirectory::open(path).ok());
    for directory in sort_unique(open.collect()) {
        let file = existing_file(directory.fd.as_fd(), Path::new(FILE), OFlags::RDONLY);
        let Ok(file) = file else { continue };
        acquire(&file, &directory.path.join(FILE), FlockOperation::NonBlockingLockShared)?;
        locks.held.push((directory, file));
    }
    Ok(locks)
}

/// Removes duplicate directories and sorts the remaining directories. All runs therefore lock
/// directories in the same order.
fn sort_unique(directories: Vec<TargetDirectory>) -> Vec<TargetDirectory> {
    let mut all: Vec<(Option<(u64, u64)>, TargetDirectory)> =
        directories.into_iter().map(|open| (open.identity().ok(), open)).collect();
    all.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
    all.dedup_by(|a, b| a.0.is_some() && a.0 == b.0);
    all.into_iter().map(|(_, open)| open).collect()
}

fn acquire(file: &OwnedFd, path: &Path, operation: FlockOperation) -> Result<(), EngineError> {
    flock(file, operation).map_err(|errno| match errno {
        Errno::WOULDBLOCK => EngineError::InUse { path: path.to_path_buf() },
        _ => failed("flock", path, errno),
    })
}

fn failed(call: &'static str, path: &Path, errno: Errno) -> EngineError {
    let error = SysError::new(call, errno.raw_os_error()).at(path);
    EngineError::system("locking a target", error)
}

fn lock(directory: &TargetDirectory) -> Result<OwnedFd, EngineError> {
    let path = directory.path.join(FILE);
    loop {
        let file = open_or_create_file(directory.fd.as_fd(), Path::new(FILE))
            .map_err(|errno| failed("open", &path, errno))?;
        acquire(&file, &path, FlockOperation::NonBlockingLockExclusive)?;
        // The previous owner of the lock may have removed the lock file before this process
        // acquired the lock.
        let named = statat(&directory.fd, FILE, AtFlags::SYMLINK_NOFOLLOW);
        let named = named.map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let held = fstat(&file).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        if named.is_some() && named == held {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(directories: &[PathBuf]) -> Vec<TargetDirectory> {
        directories.iter().map(|path| TargetDirectory::open(path).unwrap()).collect()
    }

    #[test]
    fn a_directory_by_two_names_is_locked_once() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", root.path().join("again")).unwrap();
        let twice = [root.path().to_path_buf(), root.path().join("again")];
        let locks = lock_all(&open(&twice)).unwrap();
        assert!(matches!(lock_all(&open(&twice)), Err(EngineError::InUse { .. })));
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
        assert!(matches!(lock_all(&open(&directories)), Err(EngineError::InUse { .. })));
        drop(reading);
        assert!(lock_all(&open(&directories)).is_ok());
    }

    #[test]
    fn what_is_no_file_is_no_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        std::os::unix::fs::symlink("/nowhere/else", &path).unwrap();
        assert!(lock_all(&open(&[root.path().to_path_buf()])).is_err());
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        assert!(lock_all(&open(&[root.path().to_path_buf()])).is_err());
    }
}
