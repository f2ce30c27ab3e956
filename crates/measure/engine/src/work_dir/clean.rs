//! Removes data that killed runs left on a target.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat, unlinkat};

use super::find_manifest::read_manifest_in;
use super::removal::{REMOVING, is_own_directory_in, is_own_if_known};
use super::{
    DataManifest, finish_removals, is_own_directory, lock, lock_all, maps, own_name, remove_own,
    sys_error,
};
use crate::EngineError;
use crate::mailbox::{Manifest as Mail, StoreState, probe};
use crate::matrix::manifest::{DataState, Manifest as Data};
use crate::open_target::handles::{OwnDirectory, TargetDirectory};
use crate::open_target::openat::names_in;

/// Result of cleaning a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Paths of the directories and files that were removed. They belonged to killed runs.
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
    let (target, own, probes) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if is_own_directory(&path) => {
            let target = TargetDirectory::open(parent).map_err(looking)?;
            (target, vec![name.to_owned()], Vec::new())
        }
        _ => {
            let target = TargetDirectory::open(&path).map_err(looking)?;
            let own = own_directories(&target).map_err(looking)?;
            let probes = lost_probes(&target).map_err(looking)?;
            (target, own, probes)
        }
    };
    // If a process is still running, it holds the lock. A killed process does not hold it.
    let locks = lock_all(std::slice::from_ref(&target))?;
    let finished = finish_removals(&target, None);
    maps::forget(state_directory, &finished);
    let mut cleaned = CleanupReport { finished: finished.len(), ..CleanupReport::default() };
    for name in probes {
        let path = target.path.join(&name);
        unlinkat(&target.fd, &name, AtFlags::empty()).map_err(|errno| {
            EngineError::system("removing a file", sys_error("unlink", &path, &errno.into()))
        })?;
        cleaned.removed.push(path);
    }
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

/// Returns the names of the files that killed processes left when they measured how fast the target
/// is. Newer versions of Plimsoll remove the name of this file before they write to it.
fn lost_probes(target: &TargetDirectory) -> std::io::Result<Vec<OsString>> {
    let mut names = names_in(target.fd.as_fd())?;
    names.retain(|name| {
        let name = name.to_string_lossy();
        let id = name.strip_prefix(probe::PREFIX).and_then(|id| id.parse::<u32>().ok());
        let is_file = || {
            let found = statat(&target.fd, &*name, AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
        };
        id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) && is_file()
    });
    Ok(names)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_killed_probe_is_removed() {
        let (target, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = format!("{}{}", probe::PREFIX, std::process::id());
        // No process has this id: Linux limits ids to 2^22.
        let lost = format!("{}{}", probe::PREFIX, u32::MAX);
        let other = format!("{}x", probe::PREFIX);
        for name in [&own, &lost, &other] {
            std::fs::write(target.path().join(name), "data").unwrap();
        }
        let cleaned = remove_data(target.path(), state.path(), false).unwrap();
        assert_eq!(cleaned.removed, [target.path().canonicalize().unwrap().join(&lost)]);
        assert!(target.path().join(own).exists() && target.path().join(other).exists());
    }
}
