//! Removing what runs that were killed left on a target.

use std::path::{Path, PathBuf};

use super::{finish_removals, is_ours, lock_all, maps, read_manifest, remove_own, sys};
use crate::EngineError;
use crate::mailbox::{Manifest as Mail, StoreState};
use crate::matrix::manifest::{DataState, Manifest as Data};

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
    let (target, own) = match path.parent() {
        Some(parent) if is_ours(&path) => (parent.to_path_buf(), vec![path.clone()]),
        _ => (path.clone(), own_directories(&path).map_err(looking)?),
    };
    // A run that is under way holds the lock; one that was killed does not.
    let locks = lock_all(std::slice::from_ref(&target))?;
    let finished = finish_removals(&target, None);
    maps::forget(state_directory, &finished);
    let mut cleaned = Cleaned { finished: finished.len(), ..Cleaned::default() };
    for directory in own {
        if !kept && is_closed(&directory) {
            cleaned.kept.push(directory);
            continue;
        }
        let id = remove_own(&directory, None)?;
        maps::forget(state_directory, &id.into_iter().collect::<Vec<_>>());
        cleaned.removed.push(directory);
    }
    drop(locks);
    Ok(cleaned)
}

/// Directories of ours directly below `path`.
fn own_directories(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let named = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("plimsoll-");
    let entries = std::fs::read_dir(path)?.flatten();
    let mut own: Vec<PathBuf> = entries
        .filter(|entry| named(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| is_ours(path))
        .collect();
    own.sort();
    Ok(own)
}

/// Whether a run closed the data, which it leaves so only where it was asked to keep it.
fn is_closed(directory: &Path) -> bool {
    let mail = read_manifest::<Mail>(directory).ok().flatten();
    let data = read_manifest::<Data>(directory).ok().flatten();
    mail.is_some_and(|manifest| manifest.state == StoreState::Clean)
        || data.is_some_and(|manifest| manifest.state == DataState::Clean)
}
