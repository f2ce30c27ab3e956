//! Disk space that is reserved for a bundle during its run, so that the measurement is not lost if
//! the disk fills up.
//!
//! The reserve is a hidden file in the bundle's directory. Before a bundle file is written, the
//! reserve shrinks by the file's size. Sealing removes the reserve. The run locks the hidden file,
//! so an unlocked reserve belongs to a run that was killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, statvfs};
use rustix::io::Errno;

use crate::EvidenceError;

/// Name of the reserve file in the bundle's directory.
pub const FILE: &str = ".reserve";
/// Space in bytes that a file uses in addition to its contents, for block rounding, inode and name.
const EXTRA_BYTES: u64 = 16 << 10;

/// Reserved space.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    left: Mutex<(File, u64)>,
}

impl Reserve {
    /// Reserves `size_bytes` of space in `directory`. If the file system cannot reserve space, the
    /// function only checks that `size_bytes` are free.
    pub fn create(directory: &Path, size_bytes: u64) -> Result<Self, EvidenceError> {
        let path = directory.join(FILE);
        let io = |error| EvidenceError::io("reserve the bundle's space in", &path, error);
        let file = File::create_new(&path).map_err(io)?;
        // Errors are ignored, because some file systems have no locks. The lock only shows that the
        // run still exists.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let requested = match size_bytes {
            // The file reserves no space. It is used only for its lock.
            0 => Ok(()),
            bytes => fallocate(&file, FallocateFlags::empty(), 0, bytes),
        };
        let held = match requested {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => match statvfs(directory) {
                Ok(space) if space.f_blocks > 0 => {
                    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
                    if free_bytes < size_bytes { Err(Errno::NOSPC) } else { Ok(()) }
                }
                _ => Ok(()),
            },
            other => other,
        };
        let reserve = Self { path, left: Mutex::new((file, size_bytes)) };
        match held {
            Ok(()) => Ok(reserve),
            Err(errno) => {
                reserve.release();
                Err(EvidenceError::io("reserve the bundle's space in", &reserve.path, errno.into()))
            }
        }
    }

    /// Releases as much reserved space as a file of this size needs.
    pub fn make_room(&self, size_bytes: u64) {
        let mut held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        held.1 = held.1.saturating_sub(size_bytes.saturating_add(EXTRA_BYTES));
        // A failure is ignored. The write that follows either has enough space anyway, or reports
        // the error.
        let _ = held.0.set_len(held.1);
    }

    /// Releases the remaining space, and removes the reserve file.
    pub fn release(&self) {
        let _ = std::fs::remove_file(&self.path);
        let held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = held.0.set_len(0);
    }
}

/// Returns true if the run that owns the reserve in `directory` still exists.
pub fn is_held(directory: &Path) -> bool {
    locked(directory) == Some(true)
}

/// Returns true if a process holds the lock; `None` if there is no reserve, or the file system has
/// no locks.
fn locked(directory: &Path) -> Option<bool> {
    let path = directory.join(FILE);
    // Only a regular file is opened, because opening a pipe would block until another process opens
    // it for writing.
    if !std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(false),
        Err(Errno::WOULDBLOCK) => Some(true),
        Err(_) => None,
    }
}
