//! Removes data that killed runs left on a target.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::find_manifest::read_manifest_in;
use super::removal::{REMOVING, is_own_directory_in, is_own_if_known};
use super::{
    DataManifest, finish_removals, is_own_directory, lock, lock_all, maps, own_name, remove_own,
    sys_error,
};
use crate::EngineError;
use crate::mailbox::{Manifest as Mail, StoreState};
use crate::matrix::manifest::{DataState, Manifest as Data};
use crate::open_target::handles::{OwnDirectory, TargetDirectory};
use crate::open_target::openat::names_in;

/// Result of cleaning a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Paths of the directories that were removed. They belonged to killed runs.
    pub removed: Vec<PathBuf>,
    /// Number of interrupted removals that this function completed.
    pub finished: usize,
    /// Paths of the directories that were not removed, because the user had requested that the run
    /// keep its data.
    pub kept: Vec<PathBuf>,
}

/// Removes the data of killed runs. `path` is a target directory, or a directory that a run
/// created. If `kept` is true, also removes the data that runs kept on request of the user.
///
/// # Errors
/// Fails if a directory is in use, cannot be read, or contains files that Plimsoll did not create.
pub fn remove_data(
    path: &Path,
    state_directory: &Path,
    kept: bool,
) -> Result<CleanupReport, EngineError> {
    let looking = |error| EngineError::system("looking for data", sys_error("open", path, &error));
    let path = path.canonicalize().map_err(looking)?;
    let (target, own) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if is_own_directory(&path) => {
            (TargetDirectory::open(parent).map_err(looking)?, vec![name.to_owned()])
        }
        _ => {
            let target = TargetDirectory::open(&path).map_err(looking)?;
            let own = own_directories(&target).map_err(looking)?;
            (target, own)
        }
    };
    // If a process is still running, it holds the lock. A killed process does not hold it.
    let locks = lock_all(std::slice::from_ref(&target))?;
    let finished = finish_removals(&target, None);
    maps::forget(state_directory, &finished);
    let mut cleaned = CleanupReport { finished: finished.len(), ..CleanupReport::default() };
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

/// Returns the names of files and directories that a failed run of a plan left in a target
/// directory. They are the lock file, data that was not closed, and data whose removal was
/// interrupted. If the file system prevents the examination of a directory, its name is also
/// returned.
///
/// # Errors
/// Fails if the directory cannot be read.
pub fn leftovers(directory: &Path, plan: &str) -> Result<Vec<String>, EngineError> {
    let looking =
        |error| EngineError::system("looking for data", sys_error("open", directory, &error));
    let target = TargetDirectory::open(directory).map_err(looking)?;
    let all = names_in(target.fd.as_fd()).map_err(|errno| looking(errno.into()))?;
    let own = own_name(plan);
    let is_left = |name: &&String| {
        let is_removal = name.strip_prefix(REMOVING) == Some(&own);
        let is_data =
            (is_removal || **name == own) && is_own_if_known(&target, name.as_ref()) != Some(false);
        **name == lock::FILE || is_data && (is_removal || !is_closed(&target, name.as_ref()))
    };
    let names: Vec<String> = all.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    Ok(names.iter().filter(is_left).cloned().collect())
}

/// Returns the names of the directories in `target` that Plimsoll created.
fn own_directories(target: &TargetDirectory) -> std::io::Result<Vec<OsString>> {
    let mut own = names_in(target.fd.as_fd())?;
    own.retain(|name| {
        name.to_string_lossy().starts_with("plimsoll-") && is_own_directory_in(target, name)
    });
    own.sort();
    Ok(own)
}

/// Returns true if a run closed the data. A run leaves closed data only if the user requested that
/// the run keep its data.
fn is_closed(target: &TargetDirectory, name: &OsStr) -> bool {
    let Ok(own) = OwnDirectory::open_in(target, name) else { return false };
    let mail = manifest::<Mail>(&own).is_some_and(|found| found.state == StoreState::Clean);
    mail || manifest::<Data>(&own).is_some_and(|found| found.state == DataState::Clean)
}

fn manifest<M: DataManifest>(own: &OwnDirectory) -> Option<M> {
    read_manifest_in(own, &own.path).ok().flatten()
}
