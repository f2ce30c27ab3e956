//! Removing what runs that were killed left on a target.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::find::read_manifest_in;
use super::removal::is_ours_in;
use super::{Manifested, finish_removals, is_ours, lock_all, maps, remove_own, sys};
use crate::EngineError;
use crate::mailbox::{Manifest as Mail, StoreState};
use crate::matrix::manifest::{DataState, Manifest as Data};
use crate::open_target::beneath::names_in;
use crate::open_target::held::{OwnDirectory, TargetDirectory};

/// What became of data at a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Own directories that were removed, of runs that were killed.
    pub removed: Vec<PathBuf>,
    /// Removals that had been cut off and were finished.
    pub finished: usize,
    /// Own directories that stay: data that a run kept.
    pub kept: Vec<PathBuf>,
}

/// Removes the data that killed runs left in the directory `path`, or in the own directory `path`; with
/// `kept` also data that a run was asked to keep.
///
/// # Errors
/// A directory that is in use, can't be read, or holds something that is not ours.
pub fn remove_data(
    path: &Path,
    state_directory: &Path,
    kept: bool,
) -> Result<Cleaned, EngineError> {
    let looking = |error| EngineError::system("looking for data", sys("open", path, &error));
    let path = path.canonicalize().map_err(looking)?;
    let (target, own) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if is_ours(&path) => {
            (TargetDirectory::open(parent).map_err(looking)?, vec![name.to_owned()])
        }
        _ => {
            let target = TargetDirectory::open(&path).map_err(looking)?;
            let own = own_directories(&target).map_err(looking)?;
            (target, own)
        }
    };
    // A run that is under way holds the lock; one that was killed does not.
    let locks = lock_all(std::slice::from_ref(&target))?;
    let finished = finish_removals(&target, None);
    maps::forget(state_directory, &finished);
    let mut cleaned = Cleaned { finished: finished.len(), ..Cleaned::default() };
    for name in own {
        if !kept && is_closed(&target, &name) {
            cleaned.kept.push(target.path.join(name));
            continue;
        }
        let id = remove_own(&target, &name)?;
        maps::forget(state_directory, &id.into_iter().collect::<Vec<_>>());
        cleaned.removed.push(target.path.join(name));
    }
    drop(locks);
    Ok(cleaned)
}

/// Names of our directories in `target`.
fn own_directories(target: &TargetDirectory) -> std::io::Result<Vec<OsString>> {
    let mut own = names_in(target.fd.as_fd())?;
    own.retain(|name| name.to_string_lossy().starts_with("plimsoll-") && is_ours_in(target, name));
    own.sort();
    Ok(own)
}

/// Whether a run closed the data, which it leaves so only where it was asked to keep it.
fn is_closed(target: &TargetDirectory, name: &OsStr) -> bool {
    let Ok(own) = OwnDirectory::open_in(target, name) else { return false };
    let mail = manifest::<Mail>(&own).is_some_and(|found| found.state == StoreState::Clean);
    mail || manifest::<Data>(&own).is_some_and(|found| found.state == DataState::Clean)
}

fn manifest<M: Manifested>(own: &OwnDirectory) -> Option<M> {
    read_manifest_in(own, &own.path).ok().flatten()
}
