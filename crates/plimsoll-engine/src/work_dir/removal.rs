//! Removal of Plimsoll's own data, and of nothing else.
//!
//! A removal can be interrupted at any moment. It first renames the directory, so that no run finds
//! the data. It deletes the manifest last, so that the remaining files can still be identified. The
//! next run there, or `plimsoll clean`, completes the removal.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_sys::SysError;
use rustix::fs::{AtFlags, FileType, statat, unlinkat};
use rustix::io::Errno;

use super::contents::{Contents, DEPTH_MAX};
use super::find::read_manifest_in;
use super::{Manifested, failed, own_name, sys};
use crate::EngineError;
use crate::mailbox::Manifest as Mail;
use crate::matrix::manifest::Manifest as Data;
use crate::open_target::beneath::{directory_in, names_in};
use crate::open_target::follow::split;
use crate::open_target::held::{OwnDirectory, TargetDirectory};

/// Prefix of a directory's name during its removal.
pub(crate) const REMOVING: &str = ".removing-";

/// Manifests, and their temporary files during a write.
const MANIFESTS: [&str; 2] = ["store.json", "data.json"];
const UNFINISHED: [&str; 2] = [".store.json.new", ".data.json.new"];

/// Name prefixes of files that were removed before their last close arrived. File systems in user
/// space and NFS use them. The `close` call returns before it has arrived.
const HELD_BY_A_CLOSE: [&[u8]; 2] = [b".fuse_hidden", b".nfs"];
/// Time limit for such files to disappear.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// State of the name of an own directory.
enum Look {
    Absent,
    /// The directory is empty or has only an unfinished manifest.
    Empty(OwnDirectory),
    Ours(OwnDirectory, Known),
}

/// Identity and contents of a directory, from its manifest.
pub(crate) struct Known {
    pub id: u64,
    pub contents: Contents,
}

impl Known {
    pub fn of<M: Manifested>(manifest: &M) -> Self {
        Self { id: manifest.id(), contents: manifest.contents() }
    }
}

fn foreign(directory: &Path, says: &str) -> EngineError {
    let error = SysError::new("open", libc::EEXIST).at(directory);
    let doing = format!("{}: {says}; Plimsoll did not make it", directory.display());
    EngineError::system(doing, error)
}

fn removing(directory: &Path, call: &'static str, errno: Errno) -> EngineError {
    let error = SysError::new(call, errno.raw_os_error()).at(directory);
    EngineError::system("removing data of an earlier run", error)
}

fn look(parent: &TargetDirectory, name: &OsStr) -> Result<Look, EngineError> {
    let directory = &parent.path.join(name);
    match statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Look::Absent),
        Err(errno) => {
            return Err(EngineError::system("looking", sys("stat", directory, &errno.into())));
        }
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err(foreign(directory, "it is a link")),
            _ => return Err(foreign(directory, "it is no directory")),
        },
    }
    let own = OwnDirectory::open_in(parent, name)
        .map_err(|error| EngineError::system("opening", sys("open", directory, &error)))?;
    let known = known_in::<Mail>(&own, directory)?.or(known_in::<Data>(&own, directory)?);
    if let Some(known) = known {
        return Ok(Look::Ours(own, known));
    }
    let names = names_in(own.fd.as_fd()).map_err(|errno| removing(directory, "read", errno))?;
    match names.iter().find(|name| !UNFINISHED.iter().any(|unfinished| *name == *unfinished)) {
        None => Ok(Look::Empty(own)),
        Some(name) => {
            let says = format!("it holds {} and no manifest", name.to_string_lossy());
            Err(foreign(directory, &says))
        }
    }
}

/// Reads the manifest of kind `M`. Fails if its plan does not match the name of the directory.
fn known_in<M: Manifested>(
    own: &OwnDirectory,
    directory: &Path,
) -> Result<Option<Known>, EngineError> {
    let Some(manifest) = read_manifest_in::<M>(own, directory)? else { return Ok(None) };
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix(REMOVING).unwrap_or(&name);
    if name != own_name(manifest.plan()) {
        let says = format!("it holds data of another plan, {}", own_name(manifest.plan()));
        return Err(foreign(directory, &says));
    }
    Ok(Some(Known::of(&manifest)))
}

/// Returns true if the directory is one of Plimsoll's, with a manifest.
pub(crate) fn is_ours(directory: &Path) -> bool {
    let open = |(above, name)| TargetDirectory::open(above).map(|parent| (parent, name));
    let opened = split(directory).and_then(open);
    opened.is_ok_and(|(parent, name)| is_ours_in(&parent, name))
}

/// Does the same as [`is_ours`] for a name in an open directory.
pub(crate) fn is_ours_in(parent: &TargetDirectory, name: &OsStr) -> bool {
    matches!(look(parent, name), Ok(Look::Ours(..)))
}

/// Creates and opens a store's own directory. Removes the data of an earlier run first and returns
/// its identity.
pub(crate) fn make_own(
    parent: &TargetDirectory,
    name: &OsStr,
) -> Result<(OwnDirectory, Option<u64>), EngineError> {
    let directory = &parent.path.join(name);
    let was = match look(parent, name)? {
        Look::Empty(own) => {
            // The directory may belong to another user, so it is created again.
            for name in UNFINISHED {
                let _ = unlinkat(&own.fd, name, AtFlags::empty());
            }
            gone(unlinkat(&parent.fd, name, AtFlags::REMOVEDIR))
                .map_err(|errno| removing(directory, "rmdir", errno))?;
            None
        }
        Look::Absent => None,
        Look::Ours(own, known) => {
            remove(&own, &known.contents)?;
            Some(known.id)
        }
    };
    let own = OwnDirectory::make(parent, name)
        .map_err(|error| failed("making a directory", "mkdir", directory, &error))?;
    Ok((own, was))
}

/// Removes an own directory with the contents that its manifest lists. Returns the identity of the
/// data.
///
/// # Errors
/// Fails if the directory contains other files. Plimsoll's own files are then removed and the error
/// names another one.
pub(crate) fn remove_own(
    parent: &TargetDirectory,
    name: &OsStr,
) -> Result<Option<u64>, EngineError> {
    let nothing = Contents::Mail { databases: 0, log_files: 0 };
    let (own, known) = match look(parent, name)? {
        Look::Absent => return Ok(None),
        Look::Empty(own) => (own, None),
        Look::Ours(own, known) => (own, Some(known)),
    };
    remove(&own, known.as_ref().map_or(&nothing, |known| &known.contents))?;
    Ok(known.map(|known| known.id))
}

/// Completes interrupted removals in `directory`: of the directory `name`, or of all if `name` is
/// `None`. Returns the identities of the removed data. Files of others stay.
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

/// Removes an open own directory, and in it the files that `contents` lists.
///
/// # Errors
/// Fails if the directory contains other files. Plimsoll's own files are then removed and the error
/// names another one.
pub(crate) fn remove(own: &OwnDirectory, contents: &Contents) -> Result<(), EngineError> {
    let (directory, name, parent) = (&own.path, own.name(), &own.parent);
    let mut hidden = OsString::from(REMOVING);
    hidden.push(name);
    let is_hidden = name.as_bytes().starts_with(REMOVING.as_bytes());
    let renamed = !is_hidden && {
        // An earlier removal may have left a directory of that name, which must be removed first.
        let _ = remove_own(parent, &hidden);
        rustix::fs::renameat(&parent.fd, name, &parent.fd, &hidden).is_ok()
    };
    let now: &OsStr = if renamed { &hidden } else { name };
    let mut left = Left::default();
    let failed = |errno: Errno| removing(directory, "unlink", errno);
    clear(own.fd.as_fd(), Path::new(""), contents, 0, &mut left).map_err(failed)?;
    for name in UNFINISHED.iter().chain(&MANIFESTS) {
        gone(unlinkat(&own.fd, *name, AtFlags::empty())).map_err(failed)?;
    }
    let removed = unlinkat(&parent.fd, now, AtFlags::REMOVEDIR);
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            if renamed {
                let _ = rustix::fs::renameat(&parent.fd, now, &parent.fd, name);
            }
            let error = SysError::new("rmdir", libc::ENOTEMPTY).at(directory);
            let doing = format!("everything of the run is removed; {left} stays");
            Err(EngineError::system(doing, error))
        }
        other => gone(other).map_err(|errno| removing(directory, "rmdir", errno)),
    }
}

fn gone(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Files that do not belong to Plimsoll.
#[derive(Default)]
struct Left {
    count: u64,
    first: Option<PathBuf>,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.first {
            Some(first) if self.count > 1 => {
                write!(f, "{}, which it did not make, and {} more", first.display(), self.count - 1)
            }
            Some(first) => write!(f, "{}, which it did not make,", first.display()),
            None => f.write_str("something that it did not make"),
        }
    }
}

impl Left {
    fn add(&mut self, below: PathBuf) {
        self.count += 1;
        self.first.get_or_insert(below);
    }
}

/// Removes Plimsoll's own files in the directory at `below`, except manifests.
fn clear(
    directory: BorrowedFd<'_>,
    below: &Path,
    contents: &Contents,
    depth: usize,
    left: &mut Left,
) -> rustix::io::Result<()> {
    for name in names_in(directory)? {
        let at = below.join(&name);
        let kept = |all: &[&str]| depth == 0 && all.iter().any(|one| name == *one);
        if kept(&MANIFESTS) || kept(&UNFINISHED) || is_held(&name) {
            continue;
        }
        let stat = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if contents.owns_file(&at) => {
                gone(unlinkat(directory, &name, AtFlags::empty()))?;
            }
            FileType::Directory if depth < DEPTH_MAX && contents.owns_directory(&at) => {
                match directory_in(directory, Path::new(&name)) {
                    Ok(inner) => clear(inner.as_fd(), &at, contents, depth + 1, left)?,
                    Err(_) => left.add(at.clone()),
                }
                match unlinkat(directory, &name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => {}
                    other => gone(other)?,
                }
            }
            _ => left.add(at),
        }
    }
    for name in held_on(directory)? {
        left.add(below.join(name));
    }
    Ok(())
}

fn is_held(name: &OsStr) -> bool {
    HELD_BY_A_CLOSE.iter().any(|stem| name.as_bytes().starts_with(stem))
}

/// Waits until the file system has dropped files that were removed before their close arrived.
/// Returns the files that remain after the time limit.
fn held_on(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let mut waited = Duration::ZERO;
    loop {
        let mut held = names_in(directory)?;
        held.retain(|name| is_held(name));
        if held.is_empty() || waited >= CLOSES_WITHIN {
            return Ok(held);
        }
        std::thread::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
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
            // Acts like the file system when the close arrives, once the removal has started.
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
            assert_eq!(is_held(OsStr::new(name)), held, "{name}");
        }
    }
}
