//! The state directory contains maps, which record the expected contents of stores and data sets.
//! Each store or data set has its own directory of maps, whose name is the identity of the data.
//! The file `places` in this directory lists the directories of the data. Plimsoll uses it to
//! recognise maps that are no longer needed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use serde::{Deserialize, Serialize};

use super::{read_manifest, sys_error};
use crate::EngineError;
use crate::mailbox::Manifest as Mail;
use crate::matrix::manifest::Manifest as Data;
use crate::open_target::handles::OwnDirectory;
use crate::open_target::openat::{file_in, names_in, truncated_file};

const PLACES: &str = "places";

/// Returns the path of the directory that contains the maps of the data with the identity `id`.
pub(crate) fn directory(state_directory: &Path, id: u64) -> PathBuf {
    state_directory.join(format!("{id:016x}"))
}

/// Directory that contains the data described by the maps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DataLocation {
    directory: PathBuf,
    /// Mount point of the file system that contains the directory.
    mount: PathBuf,
}

/// Records where the data is that the maps describe.
///
/// # Errors
/// Fails if a directory cannot be created or written.
pub(crate) fn write_locations(maps: &Path, directories: &[String]) -> Result<(), EngineError> {
    let places: Vec<DataLocation> = directories
        .iter()
        .map(PathBuf::from)
        .map(|directory| DataLocation { mount: mount_of(parent_of(&directory)), directory })
        .collect();
    let write = || {
        let text = serde_json::to_vec(&places)?;
        replace_file(&create_directory(maps)?, PLACES)?.write_all(&text)
    };
    write().map_err(|error| {
        EngineError::system("creating the state directory", sys_error("write", maps, &error))
    })
}

/// Opens the directory of maps. Creates it if it is missing.
fn create_directory(maps: &Path) -> std::io::Result<OwnDirectory> {
    fs::create_dir_all(maps)?;
    OwnDirectory::open(maps)
}

/// Opens a file in a directory of maps for writing, and truncates it.
pub(crate) fn replace_file(maps: &OwnDirectory, name: &str) -> std::io::Result<File> {
    Ok(truncated_file(maps.fd.as_fd(), Path::new(name)).map(File::from)?)
}

fn parent_of(directory: &Path) -> &Path {
    directory.parent().unwrap_or(Path::new("/"))
}

/// Returns the mount point of the file system that contains `path`. It is the topmost ancestor that
/// is on the same device as `path`.
fn mount_of(path: &Path) -> PathBuf {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let of = device(path);
    path.ancestors()
        .take_while(|ancestor| device(ancestor) == of)
        .last()
        .unwrap_or(path)
        .to_path_buf()
}

/// Removes the files in a directory of maps. If the directory is then empty, also removes the
/// directory.
///
/// # Errors
/// Fails if a file or the directory cannot be removed.
pub(crate) fn remove(maps: &Path) -> Result<(), EngineError> {
    let failed = |error: &std::io::Error| {
        EngineError::system("removing maps", sys_error("unlink", maps, error))
    };
    let own = match OwnDirectory::open(maps) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|error| failed(&error))?,
    };
    for name in names_in(own.fd.as_fd()).map_err(|errno| failed(&errno.into()))? {
        let stat = statat(&own.fd, &name, AtFlags::SYMLINK_NOFOLLOW);
        let is_file =
            stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        if is_file && is_map_file(&name.to_string_lossy()) {
            unlinkat(&own.fd, &name, AtFlags::empty()).map_err(|errno| failed(&errno.into()))?;
        }
    }
    let name = maps.file_name().unwrap_or_default();
    unlinkat(&own.parent.fd, name, AtFlags::REMOVEDIR).map_err(|errno| failed(&errno.into()))
}

/// Removes the maps of data that was removed. If some maps cannot be removed now, [`collect`]
/// removes them later.
pub(crate) fn forget(state_directory: &Path, ids: &[u64]) {
    for id in ids {
        let _ = remove(&directory(state_directory, *id));
    }
}

/// Returns true for names such as `db03.generations`, `db03.durable`, `17` and `places`.
fn is_map_file(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = |end| name.strip_prefix("db").and_then(|rest| rest.strip_suffix(end));
    name == PLACES
        || digits(name)
        || [".generations", ".durable"].iter().any(|end| stem(*end).is_some_and(digits))
}

/// Reads a regular file whose size must be exactly `size_bytes`. Returns `None` if the file is
/// missing, is not a regular file or has another size.
pub(crate) fn read_exactly(directory: &Path, name: &str, size_bytes: u64) -> Option<Vec<u8>> {
    let own = OwnDirectory::open(directory).ok()?;
    let (fd, stat) = file_in(own.fd.as_fd(), Path::new(name), OFlags::empty()).ok()?;
    if u64::try_from(stat.st_size).ok()? != size_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(fd).take(size_bytes).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size_bytes).then_some(bytes)
}

/// Result of the garbage collection for one directory of maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapGcOutcome {
    /// The data no longer exists, so the maps were removed. This freed the given number of bytes.
    Removed(u64),
    /// The data still exists at this path, so the maps were not removed.
    Needed(PathBuf),
    /// This path or its mount point is not accessible. It is therefore unknown whether the data
    /// still exists.
    Unknown(Option<PathBuf>),
}

/// Removes the maps in `state_directory` whose data no longer exists. If `unknown` is true, also
/// removes maps if it is unknown whether their data exists. Returns each directory of maps together
/// with its result.
///
/// # Errors
/// Fails if the state directory cannot be read, or if maps cannot be removed.
pub fn collect(
    state_directory: &Path,
    unknown: bool,
) -> Result<Vec<(PathBuf, MapGcOutcome)>, EngineError> {
    let mut all = Vec::new();
    let entries = match fs::read_dir(state_directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        other => other.map_err(|error| {
            EngineError::system("reading maps", sys_error("open", state_directory, &error))
        })?,
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let id = name.to_str().filter(|name| name.len() == 16);
        let id = id.and_then(|name| u64::from_str_radix(name, 16).ok());
        let Some(id) = id.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else {
            continue;
        };
        let gc_outcome = match gc_outcome(&path, id) {
            Some(MapGcOutcome::Unknown(_)) if unknown => None,
            other => other,
        };
        let gc_outcome = match gc_outcome {
            Some(gc_outcome) => gc_outcome,
            None => {
                let bytes = allocated_bytes(&path);
                remove(&path)?;
                MapGcOutcome::Removed(bytes)
            }
        };
        all.push((path, gc_outcome));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// Returns the reason why the maps must stay. Returns `None` if their data no longer exists.
fn gc_outcome(maps: &Path, id: u64) -> Option<MapGcOutcome> {
    let text = fs::read(maps.join(PLACES)).unwrap_or_default();
    let Ok(places) = serde_json::from_slice::<Vec<DataLocation>>(&text) else {
        return Some(MapGcOutcome::Unknown(None));
    };
    for DataLocation { directory: place, mount } in places {
        // If a file system is not mounted, its mount point is empty or missing.
        let mounted = parent_of(&place).is_dir() && mount_of(parent_of(&place)) == mount;
        let mail = read_manifest::<Mail>(&place).map(|m| m.map(|m| m.store_id));
        let data = read_manifest::<Data>(&place).map(|m| m.map(|m| m.data_id));
        match (mail, data) {
            (Ok(None), Ok(None)) if mounted => {}
            (Ok(Some(existing)), _) | (_, Ok(Some(existing))) if existing != id && mounted => {}
            (Ok(Some(existing)), _) | (_, Ok(Some(existing))) if existing == id => {
                return Some(MapGcOutcome::Needed(place));
            }
            _ => return Some(MapGcOutcome::Unknown(Some(place))),
        }
    }
    None
}

fn allocated_bytes(maps: &Path) -> u64 {
    let entries = fs::read_dir(maps).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_maps_are_removed_and_only_where_their_data_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("stores");
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        let place = |path: &Path| path.display().to_string();
        let gone = directory(&state, 7);
        write_locations(&gone, &[place(&target.join("plimsoll-a"))]).unwrap();
        fs::write(gone.join("db00.generations"), [0; 4096]).unwrap();
        let unmounted = directory(&state, 8);
        write_locations(&unmounted, &[place(&root.path().join("mount/plimsoll-b"))]).unwrap();
        let other = directory(&state, 11);
        let elsewhere =
            DataLocation { directory: target.join("plimsoll-a"), mount: "/elsewhere".into() };
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join(PLACES), serde_json::to_vec(&[elsewhere]).unwrap()).unwrap();
        let old = directory(&state, 9);
        fs::create_dir_all(&old).unwrap();
        let mixed = directory(&state, 10);
        write_locations(&mixed, &[place(&target.join("plimsoll-a"))]).unwrap();
        fs::write(mixed.join("letter.txt"), "mine").unwrap();
        assert!(remove(&mixed).is_err());
        assert!(mixed.join("letter.txt").exists());
        fs::remove_dir_all(&mixed).unwrap();

        let all = collect(&state, false).unwrap();
        assert!(matches!(all[0].1, MapGcOutcome::Removed(bytes) if bytes >= 4096), "{all:?}");
        assert!(matches!(&all[1].1, MapGcOutcome::Unknown(Some(_))), "{all:?}");
        assert_eq!(all[2].1, MapGcOutcome::Unknown(None));
        assert!(
            matches!(&all[3].1, MapGcOutcome::Unknown(Some(_))),
            "another file system is mounted there"
        );
        assert!(!gone.exists() && unmounted.exists() && old.exists());
        collect(&state, true).unwrap();
        assert!(!unmounted.exists() && !old.exists());
    }
}
