//! Finds the manifest at a path, and finds the data that the manifest describes at its current
//! location.
//!
//! A manifest contains the paths of its directories at the time when the data was created. Plimsoll
//! reads only the data at the requested path. If this data is a copy, Plimsoll never reads the
//! original.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use plimsoll_sys::{SysError, interrupted};
use rustix::fs::OFlags;

use super::{DataManifest, sys_error};
use crate::EngineError;
use crate::open_target::handles::OwnDirectory;
use crate::open_target::openat::file_in;

/// Maximum size of a manifest in bytes.
const MANIFEST_BYTES_MAX: usize = 1 << 30;

/// Reads the manifest in `directory`. Returns `None` if the directory contains no manifest.
///
/// # Errors
/// Fails if the manifest cannot be read or is not valid. Also fails if its version is newer than
/// this build supports.
pub(crate) fn read_manifest<M: DataManifest>(directory: &Path) -> Result<Option<M>, EngineError> {
    match OwnDirectory::named(directory) {
        Ok(own) => read_manifest_in(&own, directory),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let doing = format!("reading the manifest of a {}", M::WHAT);
            Err(EngineError::system(doing, sys_error("open", directory, &error)))
        }
    }
}

/// Reads the manifest in an open directory. The manifest must be a regular file, not a link.
pub(crate) fn read_manifest_in<M: DataManifest>(
    own: &OwnDirectory,
    directory: &Path,
) -> Result<Option<M>, EngineError> {
    let path = directory.join(M::FILE);
    let no_manifest = |says: &str| {
        let (path, what) = (path.display(), M::WHAT);
        EngineError::Config(format!("{path} is not the manifest of a {what}: {says}"))
    };
    let text = match file_in(own.fd.as_fd(), Path::new(M::FILE), OFlags::empty()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            return Err(no_manifest(&error.to_string()));
        }
        Err(error) => Err(error),
        Ok((_, stat)) if usize::try_from(stat.st_size).unwrap_or(0) > MANIFEST_BYTES_MAX => {
            return Err(no_manifest("it is too large"));
        }
        Ok((fd, _)) => interrupted::read_to_end(&File::from(fd), MANIFEST_BYTES_MAX),
    };
    let text = text.map_err(|error| {
        let doing = format!("reading the manifest of a {}", M::WHAT);
        EngineError::system(doing, sys_error("read", &path, &error))
    })?;
    let manifest: M =
        serde_json::from_slice(&text).map_err(|error| no_manifest(&error.to_string()))?;
    if manifest.version() > M::VERSION {
        return Err(EngineError::Config(format!(
            "{} has version {}, but this version of Plimsoll reads only versions up to {}",
            path.display(),
            manifest.version(),
            M::VERSION
        )));
    }
    manifest.check().map_err(|says| no_manifest(&says))?;
    Ok(Some(manifest))
}

/// Returns true if `path` contains a manifest with this file name. Also returns true if a run's own
/// directory in `path` contains it. The manifest need not be readable.
pub(crate) fn has_manifest(path: &Path, manifest: &str) -> bool {
    let below = std::fs::read_dir(path).into_iter().flatten().flatten().filter(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_directory && entry.file_name().to_string_lossy().starts_with("plimsoll-")
    });
    std::iter::once(path.to_path_buf())
        .chain(below.map(|entry| entry.path()))
        .any(|path| path.join(manifest).symlink_metadata().is_ok())
}

/// Returns the manifest at `path` and the directory that contains it. If `path` contains no
/// manifest, searches the directories that runs created in `path`. They must contain exactly one
/// manifest.
///
/// # Errors
/// Fails if there is no manifest, if there are several manifests, or if the manifest cannot be
/// read.
pub(crate) fn find_manifest<M: DataManifest>(path: &Path) -> Result<(PathBuf, M), EngineError> {
    let looking = |error| {
        EngineError::system(format!("looking for a {}", M::WHAT), sys_error("open", path, &error))
    };
    let path = path.canonicalize().map_err(looking)?;
    if let Some(manifest) = read_manifest(&path)? {
        return Ok((path, manifest));
    }
    let mut found: Vec<(PathBuf, M)> = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(looking)?.flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory
            && entry.file_name().to_string_lossy().starts_with("plimsoll-")
            && let Some(manifest) = read_manifest(&entry.path())?
        {
            found.push((entry.path(), manifest));
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let (what, path) = (M::WHAT, path.display());
            Err(EngineError::Config(format!("there is no {what} at {path}")))
        }
        _ => {
            let names: Vec<String> = found.iter().map(|(p, _)| p.display().to_string()).collect();
            let (what, names) = (M::WHAT, names.join(", "));
            Err(EngineError::Config(format!(
                "there are several; pass the path of one {what}: {names}"
            )))
        }
    }
}

/// Returns the current paths of the directories that a manifest lists, in the order of the
/// manifest. `found` is the directory that contains the manifest. If `found` is one of the recorded
/// paths, all recorded paths are still valid. If the data has a single directory and was copied,
/// the data is read from `found`.
///
/// # Errors
/// Fails if the data has several directories and only one of them was copied to `found`. Also fails
/// if a directory is missing or contains other data.
pub(crate) fn current_directories<M: DataManifest>(
    manifest: &M,
    found: &Path,
    recorded: &[PathBuf],
) -> Result<Vec<PathBuf>, EngineError> {
    let here = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == found);
    let mut distinct: Vec<&PathBuf> = recorded.iter().collect();
    distinct.sort();
    distinct.dedup();
    if !recorded.iter().any(here) {
        if distinct.len() == 1 {
            return Ok(vec![found.to_path_buf(); recorded.len()]);
        }
        let names: Vec<String> = distinct.iter().map(|p| p.display().to_string()).collect();
        return Err(EngineError::Config(format!(
            "{} is a copy of one part of a {} whose {} parts are at {}: it can't be checked without \
             the other parts, and nothing was read. Copy all parts to those directories and verify \
             them there",
            found.display(),
            M::WHAT,
            names.len(),
            names.join(", ")
        )));
    }
    for directory in distinct {
        let metadata = std::fs::symlink_metadata(directory).map_err(|error| {
            let doing = format!("looking for a part of the {}", M::WHAT);
            EngineError::system(doing, sys_error("stat", directory, &error))
        })?;
        if !metadata.is_dir() {
            let error = SysError::new("open", libc::ENOTDIR).at(directory);
            return Err(EngineError::system(format!("opening a part of the {}", M::WHAT), error));
        }
        let other =
            read_manifest::<M>(directory)?.filter(|existing| existing.id() != manifest.id());
        if other.is_some() {
            return Err(EngineError::Config(format!(
                "{} does not belong to this {} at {}, but to another one: nothing was read",
                directory.display(),
                M::WHAT,
                found.display()
            )));
        }
    }
    Ok(recorded.to_vec())
}

/// Opens the directories of data for reading. Resolves the path of each directory only once, and
/// checks that the directory contains this data.
///
/// # Errors
/// Fails if a directory cannot be opened, or if its data was replaced in the meantime.
pub(crate) fn open_directories<M: DataManifest>(
    manifest: &M,
    directories: &[PathBuf],
) -> Result<Vec<OwnDirectory>, EngineError> {
    let mut open = Vec::new();
    for directory in directories {
        let own = OwnDirectory::named(directory).map_err(|error| {
            let doing = format!("opening a {}", M::WHAT);
            EngineError::system(doing, sys_error("open", directory, &error))
        })?;
        let existing = read_manifest_in::<M>(&own, directory)?;
        if existing.is_some_and(|existing| existing.id() != manifest.id()) {
            let (path, what) = (directory.display(), M::WHAT);
            let says = format!(
                "{path}: the data was replaced with another {what} during the check: nothing was \
                 read"
            );
            return Err(EngineError::Config(says));
        }
        open.push(own);
    }
    Ok(open)
}

/// State of a file, compared with its expected size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The file has its expected size.
    Whole,
    /// The file is too short. The value is its size in bytes.
    Short(u64),
    /// The file is missing.
    Missing,
}

/// Compares the size of a file in a run's own directory with `size_bytes`, its expected size.
///
/// # Errors
/// Fails if the file cannot be opened. Also fails if the path is a link, or anything else that is
/// not a regular file.
pub(crate) fn file_state(
    own: &OwnDirectory,
    directory: &Path,
    below: &Path,
    size_bytes: u64,
) -> Result<FileState, EngineError> {
    match file_in(own.fd.as_fd(), below, OFlags::empty()) {
        Ok((_, stat)) => {
            let held_bytes = u64::try_from(stat.st_size).unwrap_or(0);
            Ok(if held_bytes < size_bytes {
                FileState::Short(held_bytes)
            } else {
                FileState::Whole
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(FileState::Missing),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            let path = directory.join(below);
            Err(EngineError::Config(format!("{}: {error}; nothing was read", path.display())))
        }
        Err(error) => {
            let path = directory.join(below);
            Err(EngineError::system("opening", sys_error("open", &path, &error)))
        }
    }
}
