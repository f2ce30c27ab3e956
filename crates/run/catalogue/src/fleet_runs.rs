//! Files of fleet runs that have not finished. The coordinator writes and deletes them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Returns the path of the record with which a fleet run can be resumed. `state` is the directory
/// of the ledger.
#[must_use]
pub fn record_path(state: &Path, run_id: &str) -> PathBuf {
    state.join("fleet-runs").join(format!("{run_id}.json"))
}

/// Returns the path of the file that the coordinator of a fleet run locks.
#[must_use]
pub fn lock_path(state: &Path, run_id: &str) -> PathBuf {
    state.join("fleet-locks").join(run_id)
}

/// Returns whether a process follows a fleet run that has not finished. `None` if the run is not a
/// fleet run, or has finished.
pub(crate) fn is_followed(state: &Path, run_id: &str) -> Option<bool> {
    record_path(state, run_id).is_file().then(|| {
        let lock = File::open(lock_path(state, run_id)).map(|file| file.try_lock_shared());
        matches!(lock, Ok(Err(TryLockError::WouldBlock)))
    })
}
