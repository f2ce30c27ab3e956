//! Directories of Plimsoll's own below those that a plan names: their lock, their name, their making and
//! their removal.
//!
//! Below each directory that the plan names, a run has one of its own, `plimsoll-NAME`. It holds a
//! manifest of what it is: a directory of that name without one is not ours and is never touched.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use plimsoll_plan::{ResolvedPlan, Target};
use plimsoll_sys::SysError;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::EngineError;

const LOCK: &str = ".plimsoll.lock";

/// The manifests that make a directory one of ours: of a mail store, and of a data set.
pub(crate) const MANIFESTS: [&str; 2] = ["store.json", "data.json"];

/// The locks of the target's directories, with the files that hold them.
#[derive(Debug)]
pub(crate) struct Locks(Vec<(PathBuf, OwnedFd)>);

impl Drop for Locks {
    fn drop(&mut self) {
        for (path, _) in &self.0 {
            // Removed while the lock is held; a run that waits for it looks at the name again.
            let _ = fs::remove_file(path);
        }
    }
}

/// Name of a store's own directory.
pub(crate) fn own_name(plan: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("plimsoll-{}", plan.chars().map(safe).collect::<String>())
}

pub(crate) fn sys(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}

pub(crate) fn lock_all(directories: &[PathBuf]) -> Result<Locks, EngineError> {
    let mut sorted: Vec<&PathBuf> = directories.iter().collect();
    sorted.sort();
    sorted.dedup();
    let mut locks = Locks(Vec::new());
    for directory in sorted {
        locks.0.push(lock(directory)?);
    }
    Ok(locks)
}

fn lock(directory: &Path) -> Result<(PathBuf, OwnedFd), EngineError> {
    let path = directory.join(LOCK);
    loop {
        let file =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(
                |error| EngineError::system("locking a target", sys("open", &path, &error)),
            )?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            let error = SysError::new("flock", errno.raw_os_error()).at(&path);
            match errno {
                rustix::io::Errno::WOULDBLOCK => EngineError::InUse { path: path.clone() },
                _ => EngineError::system("locking a target", error),
            }
        })?;
        // Whoever held it may have removed the name before we had the lock.
        let named = fs::metadata(&path).map(|m| std::os::unix::fs::MetadataExt::ino(&m)).ok();
        let held = file.metadata().map(|m| std::os::unix::fs::MetadataExt::ino(&m)).ok();
        if named.is_some() && named == held {
            return Ok((path, file.into()));
        }
    }
}

/// Free space against what the plan needs, per file system.
pub(crate) fn check_space(plan: &ResolvedPlan, target: &Target) -> Result<(), EngineError> {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt;
    let mut needs: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for need in plan.required_bytes(target) {
        let path = PathBuf::from(&need.directory);
        let device = fs::metadata(&path).map(|m| m.dev()).unwrap_or(0);
        let sum = needs.entry(device).or_insert((path, 0));
        sum.1 = sum.1.saturating_add(need.bytes);
    }
    for (path, needed_bytes) in needs.into_values() {
        let own = path.join(own_name(&plan.name));
        let reused_bytes = occupied_bytes(&own);
        let Ok(statistics) = rustix::fs::statvfs(&path) else { continue };
        // File systems without a size of their own (ramfs) tell nothing.
        if statistics.f_blocks == 0 {
            continue;
        }
        let free_bytes = statistics.f_bavail.saturating_mul(statistics.f_frsize);
        if free_bytes.saturating_add(reused_bytes) < needed_bytes {
            return Err(EngineError::TooSmall { path, needed_bytes, free_bytes });
        }
    }
    Ok(())
}

/// Bytes that an earlier store of ours frees when it is replaced.
fn occupied_bytes(own: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    if !is_ours(own) {
        return 0;
    }
    let mut bytes = 0;
    let mut stack = vec![own.to_path_buf()];
    while let Some(directory) = stack.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => stack.push(entry.path()),
                Ok(metadata) => bytes += metadata.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Makes a store's own directory; what an earlier run of ours left there is removed.
pub(crate) fn make_own(directory: &Path) -> Result<(), EngineError> {
    if directory.exists() {
        // The same directory may serve databases and logs: then it was made a moment ago.
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(());
        }
        if !is_ours(directory) {
            let error = SysError::new("mkdir", libc::EEXIST).at(directory);
            return Err(EngineError::system(
                "it holds something that Plimsoll did not make",
                error,
            ));
        }
        remove_own(directory)?;
    }
    fs::create_dir(directory)
        .map_err(|error| EngineError::system("making a directory", sys("mkdir", directory, &error)))
}

/// Removes a directory of ours: one that holds a manifest, or nothing.
pub(crate) fn remove_own(directory: &Path) -> Result<(), EngineError> {
    if !directory.exists() {
        return Ok(());
    }
    let empty = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if !empty && !is_ours(directory) {
        let error = SysError::new("rmdir", libc::EEXIST).at(directory);
        return Err(EngineError::system("it holds something that Plimsoll did not make", error));
    }
    fs::remove_dir_all(directory)
        .map_err(|error| EngineError::system("removing a store", sys("rmdir", directory, &error)))
}

/// Whether a directory holds a manifest.
pub(crate) fn is_ours(directory: &Path) -> bool {
    MANIFESTS.iter().any(|manifest| directory.join(manifest).is_file())
}

/// What a manifest is: of a mail store, or of a data set.
pub(crate) trait Manifested: Serialize + DeserializeOwned {
    /// Name of the manifest's file.
    const FILE: &'static str;
    /// What it describes, as people name it.
    const WHAT: &'static str;
    /// The newest version that this build reads.
    const VERSION: u32;

    /// The version that it is of.
    fn version(&self) -> u32;
}

/// Reads the manifest in `directory`; `None` where there is none.
///
/// # Errors
/// A manifest that can't be read, is none of ours, or is newer than this build.
pub(crate) fn read_manifest<M: Manifested>(directory: &Path) -> Result<Option<M>, EngineError> {
    let path = directory.join(M::FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let doing = format!("reading the manifest of a {}", M::WHAT);
            return Err(EngineError::system(doing, sys("read", &path, &error)));
        }
    };
    let manifest: M = serde_json::from_str(&text).map_err(|error| {
        let (path, what) = (path.display(), M::WHAT);
        EngineError::Config(format!("{path} is not the manifest of a {what}: {error}"))
    })?;
    if manifest.version() > M::VERSION {
        return Err(EngineError::Config(format!(
            "{} has version {}, and this Plimsoll reads up to {}",
            path.display(),
            manifest.version(),
            M::VERSION
        )));
    }
    Ok(Some(manifest))
}

/// Writes the manifest to each of `directories`, once: whole or not at all.
///
/// # Errors
/// A directory that can't be written.
pub(crate) fn write_manifest<M: Manifested>(
    manifest: &M,
    directories: &[&Path],
) -> Result<(), EngineError> {
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| EngineError::Config(format!("the manifest of a {}: {error}", M::WHAT)))?;
    for (at, directory) in directories.iter().enumerate() {
        if directories[..at].contains(directory) {
            continue;
        }
        let path = directory.join(M::FILE);
        let temporary = directory.join(format!(".{}.new", M::FILE));
        let write = || {
            let mut file = fs::File::create(&temporary)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let doing = format!("writing the manifest of a {}", M::WHAT);
            EngineError::system(doing, sys("write", &path, &error))
        })?;
    }
    Ok(())
}

/// The manifest at `path`, or the only one in a directory of ours directly below it.
///
/// # Errors
/// None there, several of them, or one that can't be read.
pub(crate) fn find_manifest<M: Manifested>(path: &Path) -> Result<M, EngineError> {
    if let Some(manifest) = read_manifest(path)? {
        return Ok(manifest);
    }
    let entries = fs::read_dir(path).map_err(|error| {
        EngineError::system(format!("looking for a {}", M::WHAT), sys("open", path, &error))
    })?;
    let mut found: Vec<(PathBuf, M)> = Vec::new();
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with("plimsoll-")
            && let Some(manifest) = read_manifest(&entry.path())?
        {
            found.push((entry.path(), manifest));
        }
    }
    match found.len() {
        1 => Ok(found.remove(0).1),
        0 => {
            let (what, path) = (M::WHAT, path.display());
            Err(EngineError::Config(format!("there is no {what} at {path}")))
        }
        _ => {
            let names: Vec<String> = found.iter().map(|(p, _)| p.display().to_string()).collect();
            let (what, names) = (M::WHAT, names.join(", "));
            Err(EngineError::Config(format!("name one {what} of {names}")))
        }
    }
}

/// Directories that a plan names: there, and absolute.
///
/// # Errors
/// One that is missing, or is no directory.
pub(crate) fn named_directories<'a>(
    names: impl Iterator<Item = &'a String>,
    needs: &str,
) -> Result<Vec<PathBuf>, EngineError> {
    let looking = |path: &Path, error: &std::io::Error| {
        EngineError::system("looking at a target", sys("stat", path, error))
    };
    names
        .map(|named| {
            let path = Path::new(named);
            let metadata = fs::metadata(path).map_err(|error| looking(path, &error))?;
            if !metadata.is_dir() {
                let error = SysError::new("open", libc::ENOTDIR).at(path);
                return Err(EngineError::system(needs, error));
            }
            path.canonicalize().map_err(|error| looking(path, &error))
        })
        .collect()
}
