//! Space that is held for a bundle while its run goes on, so that a disk that fills up meanwhile does not
//! cost what was measured.
//!
//! The space is a hidden file in the bundle's directory. Each file of the bundle takes its size from it,
//! and sealing gives back the rest. The file is locked for as long as its run lives: one that is not
//! locked was left by a killed run.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, statvfs};
use rustix::io::Errno;

use crate::EvidenceError;

/// Name of the file in the bundle's directory.
pub const FILE: &str = ".reserve";
/// What a file takes beyond its bytes: its blocks, its inode, its name.
const EXTRA_BYTES: u64 = 16 << 10;

/// Held space.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    left: Mutex<(File, u64)>,
}

impl Reserve {
    /// Holds `size_bytes` in `directory`. A file system that cannot reserve is only asked for its free
    /// space.
    pub fn take(directory: &Path, size_bytes: u64) -> Result<Self, EvidenceError> {
        let path = directory.join(FILE);
        let io = |error| EvidenceError::io("reserve the bundle's space in", &path, error);
        let file = File::create_new(&path).map_err(io)?;
        // Best effort: the lock says that the run lives, and not every file system has locks.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let asked = match size_bytes {
            // Nothing is to be held but the lock.
            0 => Ok(()),
            bytes => fallocate(&file, FallocateFlags::empty(), 0, bytes),
        };
        let held = match asked {
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
                reserve.give_back();
                Err(EvidenceError::io("reserve the bundle's space in", &reserve.path, errno.into()))
            }
        }
    }

    /// Gives back what a file of so many bytes takes.
    pub fn make_room(&self, size_bytes: u64) {
        let mut held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        held.1 = held.1.saturating_sub(size_bytes.saturating_add(EXTRA_BYTES));
        // What cannot be given back is not needed by the file, or its write says so.
        let _ = held.0.set_len(held.1);
    }

    /// Gives back the rest.
    pub fn give_back(&self) {
        let _ = std::fs::remove_file(&self.path);
        let held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = held.0.set_len(0);
    }
}

/// Whether the space held in `directory` was left by a run that was killed.
pub fn is_left_over(directory: &Path) -> bool {
    locked(directory) == Some(false)
}

/// Whether a run lives that makes its bundle in `directory`.
pub fn is_held(directory: &Path) -> bool {
    locked(directory) == Some(true)
}

/// Whether somebody has the lock; `None`: there is none, or the file system does not tell.
fn locked(directory: &Path) -> Option<bool> {
    let path = directory.join(FILE);
    // Nothing else of that name is opened: a pipe would wait for a writer.
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

/// Removes space that a killed run left held in `directory`; returns how many bytes it was.
///
/// # Errors
/// A file that cannot be removed.
pub fn remove_left_over(directory: &Path) -> Result<u64, EvidenceError> {
    let path = directory.join(FILE);
    if !is_left_over(directory) {
        return Ok(0);
    }
    let size_bytes = std::fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(EvidenceError::io("remove", &path, error))
        }
        _ => Ok(size_bytes),
    }
}
