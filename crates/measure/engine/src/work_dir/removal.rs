//! Removes data that Plimsoll created, and no other data.
//!
//! A removal can be interrupted at any moment. It first renames the directory, so that no run finds
//! the data. It deletes the manifest last, so that the remaining files can still be identified. The
//! next run on this target, or `plimsoll clean`, completes the removal.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_sys::SysError;
use rustix::fs::{AtFlags, FileType, statat, unlinkat};
use rustix::io::Errno;

use super::contents::{Contents, DEPTH_MAX};
use super::find_manifest::read_manifest_in;
use super::{DataManifest, failed, own_name, sys_error};
use crate::EngineError;
use crate::mailbox::Manifest as Mail;
use crate::matrix::manifest::Manifest as Data;
use crate::open_target::handles::{OwnDirectory, TargetDirectory};
use crate::open_target::openat::{directory_in, names_in};
use crate::open_target::resolve::split;

/// Prefix that a directory's name has while the directory is being removed.
pub(crate) const REMOVING: &str = ".removing-";

/// Names of the manifest files. The next constant contains the names of the temporary files that
/// exist while a manifest is written.
const MANIFESTS: [&str; 2] = ["store.json", "data.json"];
const UNFINISHED: [&str; 2] = [".store.json.new", ".data.json.new"];

/// Prefixes of names that the file system gives to removed files. A file has such a name if it is
/// removed before the file system has processed the last `close` of the file. It disappears after
/// this `close` was processed. This happens on NFS and on file systems in user space, where the
/// `close` call returns early.
const HIDDEN_PREFIXES: [&[u8]; 2] = [b".fuse_hidden", b".nfs"];
/// Maximum time for which a removal waits until files with these prefixes have disappeared.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What exists at the path of a run's own directory.
enum DirectoryState {
    Absent,
    /// The directory is empty, or it contains only a manifest that was not completely written.
    Empty(OwnDirectory),
    Owned(OwnDirectory, DataIdentity),
}

/// Identity and contents of the data in a directory, as stated in its manifest.
pub(crate) struct DataIdentity {
    pub id: u64,
    pub contents: Contents,
}

impl DataIdentity {
    pub fn of<M: DataManifest>(manifest: &M) -> Self {
        Self { id: manifest.id(), contents: manifest.contents() }
    }
}

fn foreign_error(directory: &Path, says: &str) -> EngineError {
    let error = SysError::new("open", libc::EEXIST).at(directory);
    let doing = format!("{}: {says}; Plimsoll did not create it", directory.display());
    EngineError::system(doing, error)
}

fn removal_error(directory: &Path, call: &'static str, errno: Errno) -> EngineError {
    let error = SysError::new(call, errno.raw_os_error()).at(directory);
    EngineError::system("removing data", error)
}

fn directory_state(parent: &TargetDirectory, name: &OsStr) -> Result<DirectoryState, EngineError> {
    let directory = &parent.path.join(name);
    match statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(DirectoryState::Absent),
        Err(errno) => {
            return Err(EngineError::system(
                "examining",
                sys_error("stat", directory, &errno.into()),
            ));
        }
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err(foreign_error(directory, "it is a link")),
            _ => return Err(foreign_error(directory, "it is not a directory")),
        },
    }
    let own = OwnDirectory::open_in(parent, name)
        .map_err(|error| EngineError::system("opening", sys_error("open", directory, &error)))?;
    let identity =
        read_identity::<Mail>(&own, directory)?.or(read_identity::<Data>(&own, directory)?);
    if let Some(identity) = identity {
        return Ok(DirectoryState::Owned(own, identity));
    }
    let names =
        names_in(own.fd.as_fd()).map_err(|errno| removal_error(directory, "read", errno))?;
    match names.iter().find(|name| !UNFINISHED.iter().any(|unfinished| *name == *unfinished)) {
        None => Ok(DirectoryState::Empty(own)),
        Some(name) => {
            let name = name.to_string_lossy();
            let says = format!("it contains {name} but no manifest of Plimsoll");
            Err(foreign_error(directory, &says))
        }
    }
}

/// Reads the manifest of type `M`. Fails if the plan in the manifest does not match the name of the
/// directory.
fn read_identity<M: DataManifest>(
    own: &OwnDirectory,
    directory: &Path,
) -> Result<Option<DataIdentity>, EngineError> {
    let Some(manifest) = read_manifest_in::<M>(own, directory)? else { return Ok(None) };
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix(REMOVING).unwrap_or(&name);
    if name != own_name(manifest.plan()) {
        let says = format!("it contains data of another plan, {}", own_name(manifest.plan()));
        return Err(foreign_error(directory, &says));
    }
    Ok(Some(DataIdentity::of(&manifest)))
}

/// Returns true if Plimsoll created the directory. Such a directory contains a manifest, or it
/// looks like the directory of a run that was killed before it had written a manifest.
pub(crate) fn is_own_directory(directory: &Path) -> bool {
    let open = |(above, name)| TargetDirectory::open(above).map(|parent| (parent, name));
    let opened = split(directory).and_then(open);
    opened.is_ok_and(|(parent, name)| is_own_directory_in(&parent, name))
}

/// Does the same as [`is_own_directory`], for a name in an open directory.
pub(crate) fn is_own_directory_in(parent: &TargetDirectory, name: &OsStr) -> bool {
    is_own_if_known(parent, name) == Some(true)
}

/// Does the same as [`is_own_directory_in`]. However, returns `None` if the directory exists and an
/// error of the file system prevents its examination.
pub(crate) fn is_own_if_known(parent: &TargetDirectory, name: &OsStr) -> Option<bool> {
    match directory_state(parent, name) {
        Ok(DirectoryState::Owned(..)) => Some(true),
        Ok(DirectoryState::Empty(_)) => {
            let name = name.as_bytes();
            let name = name.strip_prefix(REMOVING.as_bytes()).unwrap_or(name);
            Some(name.starts_with(b"plimsoll-"))
        }
        Ok(DirectoryState::Absent) => Some(false),
        Err(EngineError::System { source, .. }) => {
            // Either this user has no permission to open the directory, or it contains files that
            // Plimsoll did not create.
            let is_others = matches!(source.errno, libc::EACCES | libc::EPERM | libc::EEXIST);
            is_others.then_some(false)
        }
        Err(_) => Some(false),
    }
}

/// Creates and opens the run's own directory. Before that, removes the data of an earlier run.
/// Returns the identity of the removed data.
pub(crate) fn create_own(
    parent: &TargetDirectory,
    name: &OsStr,
) -> Result<(OwnDirectory, Option<u64>), EngineError> {
    let directory = &parent.path.join(name);
    let was = match directory_state(parent, name)? {
        DirectoryState::Empty(own) => {
            // The existing directory may belong to another user, so it is removed and created
            // again.
            for name in UNFINISHED {
                let _ = unlinkat(&own.fd, name, AtFlags::empty());
            }
            ignore_missing(unlinkat(&parent.fd, name, AtFlags::REMOVEDIR))
                .map_err(|errno| removal_error(directory, "rmdir", errno))?;
            None
        }
        DirectoryState::Absent => None,
        DirectoryState::Owned(own, identity) => {
            remove(&own, &identity.contents)?;
            Some(identity.id)
        }
    };
    let own = OwnDirectory::make(parent, name)
        .map_err(|error| failed("creating a directory", "mkdir", directory, &error))?;
    Ok((own, was))
}

/// Removes a run's own directory, with the files that its manifest lists. Returns the identity of
/// the removed data.
///
/// # Errors
/// Fails if the directory contains files that Plimsoll did not create. Even in this case, the files
/// of Plimsoll are removed. The error contains the name of one of the remaining files.
pub(crate) fn remove_own(
    parent: &TargetDirectory,
    name: &OsStr,
) -> Result<Option<u64>, EngineError> {
    let nothing = Contents::Mail { databases: 0, log_files: 0 };
    let (own, identity) = match directory_state(parent, name)? {
        DirectoryState::Absent => return Ok(None),
        DirectoryState::Empty(own) => (own, None),
        DirectoryState::Owned(own, identity) => (own, Some(identity)),
    };
    remove(&own, identity.as_ref().map_or(&nothing, |identity| &identity.contents))?;
    Ok(identity.map(|identity| identity.id))
}

/// Completes interrupted removals in `directory`. If `name` is set, completes only the removal of
/// the directory `name`. Returns the identities of the removed data. Files that Plimsoll did not
/// create are not removed.
pub(crate) fn finish_removals(directory: &TargetDirectory, name: Option<&str>) -> Vec<u64> {
    let names: Vec<OsString> = match name {
        Some(name) => vec![format!("{REMOVING}{name}").into()],
        None => names_in(directory.fd.as_fd())
            .unwrap_or_default()
            .into_iter()
            .filter(|name| name.as_bytes().starts_with(format!("{REMOVING}plimsoll-").as_bytes()))
            .collect(),
    };
    names.into_iter().filter_map(|name| remove_own(directory, &name).ok().flatten()).collect()
}

/// Removes a run's own directory, which is already open. Removes the files in it that `contents`
/// lists.
///
/// # Errors
/// Fails if the directory contains files that Plimsoll did not create. Even in this case, the files
/// of Plimsoll are removed. The error contains the name of one of the remaining files.
pub(crate) fn remove(own: &OwnDirectory, contents: &Contents) -> Result<(), EngineError> {
    let (directory, name, parent) = (&own.path, own.name(), &own.parent);
    let mut hidden = OsString::from(REMOVING);
    hidden.push(name);
    let is_hidden = name.as_bytes().starts_with(REMOVING.as_bytes());
    let renamed = !is_hidden && {
        // An earlier interrupted removal may have left a directory with the new name. That
        // directory must be removed first.
        let _ = remove_own(parent, &hidden);
        rustix::fs::renameat(&parent.fd, name, &parent.fd, &hidden).is_ok()
    };
    let now: &OsStr = if renamed { &hidden } else { name };
    let mut foreign_files = ForeignFiles::default();
    let failed = |errno: Errno| removal_error(directory, "unlink", errno);
    clear(own.fd.as_fd(), Path::new(""), contents, 0, &mut foreign_files).map_err(failed)?;
    for name in UNFINISHED.iter().chain(&MANIFESTS) {
        ignore_missing(unlinkat(&own.fd, *name, AtFlags::empty())).map_err(failed)?;
    }
    let removed = unlinkat(&parent.fd, now, AtFlags::REMOVEDIR);
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            if renamed {
                let _ = rustix::fs::renameat(&parent.fd, now, &parent.fd, name);
            }
            let error = SysError::new("rmdir", libc::ENOTEMPTY).at(directory);
            let doing = format!("all data of the run was removed; {foreign_files} remains");
            Err(EngineError::system(doing, error))
        }
        other => ignore_missing(other).map_err(|errno| removal_error(directory, "rmdir", errno)),
    }
}

/// Removes the directories that runs created. If one directory cannot be removed, the other
/// directories are still removed. If several paths refer to the same directory, it is removed only
/// once, because calls on a removed directory fail on some file systems.
///
/// # Errors
/// Returns the error of the first directory that could not be removed.
pub(crate) fn remove_each<'a>(
    directories: impl Iterator<Item = &'a OwnDirectory>,
    contents: &Contents,
) -> Result<(), EngineError> {
    let mut identities = BTreeSet::new();
    let is_first = |own: &&OwnDirectory| own.identity().map_or(true, |id| identities.insert(id));
    let distinct: Vec<&OwnDirectory> = directories.filter(is_first).collect();
    distinct.into_iter().map(|own| remove(own, contents)).fold(Ok(()), Result::and)
}

fn ignore_missing(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Files that Plimsoll did not create.
#[derive(Default)]
struct ForeignFiles {
    count: u64,
    first: Option<PathBuf>,
}

impl std::fmt::Display for ForeignFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.first {
            Some(first) if self.count > 1 => {
                write!(
                    f,
                    "{}, which Plimsoll did not create, and {} more",
                    first.display(),
                    self.count - 1
                )
            }
            Some(first) => write!(f, "{}, which Plimsoll did not create,", first.display()),
            None => f.write_str("something that Plimsoll did not create"),
        }
    }
}

impl ForeignFiles {
    fn add(&mut self, below: PathBuf) {
        self.count += 1;
        self.first.get_or_insert(below);
    }
}

/// Removes the files that Plimsoll created in the directory `below`. Manifests are not removed.
fn clear(
    directory: BorrowedFd<'_>,
    below: &Path,
    contents: &Contents,
    depth: usize,
    foreign_files: &mut ForeignFiles,
) -> rustix::io::Result<()> {
    for name in names_in(directory)? {
        let at = below.join(&name);
        let kept = |all: &[&str]| depth == 0 && all.iter().any(|one| name == *one);
        if kept(&MANIFESTS) || kept(&UNFINISHED) || is_hidden(&name) {
            continue;
        }
        let stat = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if contents.owns_file(&at) => {
                ignore_missing(unlinkat(directory, &name, AtFlags::empty()))?;
            }
            FileType::Directory if depth < DEPTH_MAX && contents.owns_directory(&at) => {
                match directory_in(directory, Path::new(&name)) {
                    Ok(inner) => clear(inner.as_fd(), &at, contents, depth + 1, foreign_files)?,
                    Err(error) => match error.raw_os_error() {
                        Some(libc::ENOENT) => continue,
                        // If the manifest were removed now, no later removal could identify the
                        // remaining files.
                        Some(errno) => return Err(Errno::from_raw_os_error(errno)),
                        // The entry is a link, or another file system is mounted there. It is not
                        // removed.
                        None => foreign_files.add(at.clone()),
                    },
                }
                match unlinkat(directory, &name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => {}
                    other => ignore_missing(other)?,
                }
            }
            _ => foreign_files.add(at),
        }
    }
    for name in wait_for_closes(directory)? {
        foreign_files.add(below.join(name));
    }
    Ok(())
}

fn is_hidden(name: &OsStr) -> bool {
    HIDDEN_PREFIXES.iter().any(|stem| name.as_bytes().starts_with(stem))
}

/// Waits until the file system has really deleted the removed files whose last `close` it had not
/// yet processed. Returns the files that remain after the time limit.
fn wait_for_closes(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let mut waited = Duration::ZERO;
    loop {
        let mut held = names_in(directory)?;
        held.retain(|name| is_hidden(name));
        if held.is_empty() || waited >= CLOSE_TIMEOUT {
            return Ok(held);
        }
        std::thread::sleep(POLL_INTERVAL);
        waited += POLL_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn what_a_late_close_still_holds_is_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let own = above.path().join("plimsoll-x");
        let hidden =
            above.path().join(format!("{REMOVING}plimsoll-x/.fuse_hidden0000000100000001"));
        fs::create_dir(&own).unwrap();
        fs::write(own.join(".fuse_hidden0000000100000001"), b"").unwrap();
        let close = std::thread::spawn(move || {
            // Simulates a file system that processes the `close` of a file only after the removal
            // has started.
            while !hidden.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            fs::remove_file(&hidden).unwrap();
        });
        let contents = Contents::Mail { databases: 0, log_files: 0 };
        remove(&OwnDirectory::open(&own).unwrap(), &contents).unwrap();
        close.join().unwrap();
        assert_eq!(fs::read_dir(above.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_of_that_kind_and_no_others_are_waited_for() {
        for (name, held) in
            [(".fuse_hidden01", true), (".nfs0000", true), (".nf", false), ("x.nfs", false)]
        {
            assert_eq!(is_hidden(OsStr::new(name)), held, "{name}");
        }
    }
}
