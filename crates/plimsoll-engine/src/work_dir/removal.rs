//! Removing what is ours, and nothing else.
//!
//! A removal can be cut off at any moment. It begins by giving the directory another name, under which
//! no run looks for data, and takes the manifest last, so that what is left says what it is: the next
//! run there, or `plimsoll clean`, goes on with it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_sys::SysError;
use rustix::fs::{AtFlags, Dir, FileType, statat, unlinkat};
use rustix::io::Errno;

use super::beneath::{OwnDirectory, directory_in};
use super::contents::{Contents, DEPTH_MAX};
use super::find::read_manifest_in;
use super::{Manifested, own_name, sys};
use crate::EngineError;
use crate::mailbox::Manifest as Mail;
use crate::matrix::manifest::Manifest as Data;

/// What a directory is called while it is being removed: this before its name.
pub(crate) const REMOVING: &str = ".removing-";

/// Manifests, and manifests that were being written.
const MANIFESTS: [&str; 2] = ["store.json", "data.json"];
const UNFINISHED: [&str; 2] = [".store.json.new", ".data.json.new"];

/// What file systems in user space, and NFS, call a file that was removed before its last close had arrived. A
/// close returns before it has.
const HELD_BY_A_CLOSE: [&[u8]; 2] = [b".fuse_hidden", b".nfs"];
/// So long such files are waited for.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What lies under the name of an own directory.
enum Look {
    Absent,
    /// Nothing, or a manifest that was never finished.
    Empty(OwnDirectory),
    Ours(OwnDirectory, Known),
}

/// What a manifest says of a directory.
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

fn look(directory: &Path) -> Result<Look, EngineError> {
    match std::fs::symlink_metadata(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Look::Absent),
        Err(error) => return Err(EngineError::system("looking", sys("stat", directory, &error))),
        Ok(metadata) if metadata.is_symlink() => {
            return Err(foreign(directory, "it is a link"));
        }
        Ok(metadata) if !metadata.is_dir() => {
            return Err(foreign(directory, "it is no directory"));
        }
        Ok(_) => {}
    }
    let own = OwnDirectory::open(directory)
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

/// What the manifest of kind `M` says, where the directory is the one that its plan would make.
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

/// Whether a directory is one of ours, with a manifest that says what is in it.
pub(crate) fn is_ours(directory: &Path) -> bool {
    matches!(look(directory), Ok(Look::Ours(..)))
}

/// Makes a store's own directory; what an earlier run of ours left there is removed. Gives the identity
/// of what was there.
pub(crate) fn make_own(directory: &Path) -> Result<Option<u64>, EngineError> {
    let was = match look(directory)? {
        // The same directory may serve databases and logs: then it was made a moment ago.
        Look::Empty(own) => {
            for name in UNFINISHED {
                let _ = unlinkat(&own.fd, name, AtFlags::empty());
            }
            return Ok(None);
        }
        Look::Absent => None,
        Look::Ours(own, known) => {
            remove(directory, own, &known.contents)?;
            Some(known.id)
        }
    };
    std::fs::create_dir(directory).map_err(|error| {
        EngineError::system("making a directory", sys("mkdir", directory, &error))
    })?;
    Ok(was)
}

/// Removes a directory of ours, of which `known` says what is in it; without it, its manifest does. Gives
/// the identity of what was there.
///
/// # Errors
/// Something that is not ours: then what is ours was removed and the rest is named.
pub(crate) fn remove_own(
    directory: &Path,
    known: Option<&Known>,
) -> Result<Option<u64>, EngineError> {
    let found = match known {
        Some(_) => OwnDirectory::open(directory).map(|own| (own, None)),
        None => match look(directory)? {
            Look::Absent => return Ok(None),
            Look::Empty(own) => Ok((own, None)),
            Look::Ours(own, known) => Ok((own, Some(known))),
        },
    };
    let (own, found) = match found {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::system("opening", sys("open", directory, &error))),
        Ok(found) => found,
    };
    let known = known.or(found.as_ref());
    let nothing = Contents::Mail { databases: 0, log_files: 0 };
    remove(directory, own, known.map_or(&nothing, |known| &known.contents))?;
    Ok(known.map(|known| known.id))
}

/// Goes on with removals below `directory` that were cut off, of directories that are called `name`, or of
/// all. Gives the identities of what was removed. What is not ours stays.
pub(crate) fn finish_removals(directory: &Path, name: Option<&str>) -> Vec<u64> {
    let names: Vec<OsString> = match name {
        Some(name) => vec![format!("{REMOVING}{name}").into()],
        None => std::fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| name.as_bytes().starts_with(format!("{REMOVING}plimsoll-").as_bytes()))
            .collect(),
    };
    let remove = |name: OsString| remove_own(&directory.join(name), None).ok().flatten();
    names.into_iter().filter_map(remove).collect()
}

fn remove(directory: &Path, own: OwnDirectory, contents: &Contents) -> Result<(), EngineError> {
    let name = directory.file_name().unwrap_or_default();
    let mut hidden = OsString::from(REMOVING);
    hidden.push(name);
    let is_hidden = name.as_bytes().starts_with(REMOVING.as_bytes());
    let renamed = !is_hidden && {
        // What an earlier removal left under that name goes first.
        let _ = remove_own(&directory.with_file_name(&hidden), None);
        rustix::fs::renameat(&own.parent, name, &own.parent, &hidden).is_ok()
    };
    let now: &OsStr = if renamed { &hidden } else { name };
    let mut left = Left::default();
    let failed = |errno: Errno| removing(directory, "unlink", errno);
    clear(own.fd.as_fd(), Path::new(""), contents, 0, &mut left).map_err(failed)?;
    for name in UNFINISHED.iter().chain(&MANIFESTS) {
        gone(unlinkat(&own.fd, *name, AtFlags::empty())).map_err(failed)?;
    }
    let removed = unlinkat(&own.parent, now, AtFlags::REMOVEDIR);
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            if renamed {
                let _ = rustix::fs::renameat(&own.parent, now, &own.parent, name);
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

/// What is not ours.
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

/// Names of a directory.
fn names_in(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes what is ours in a directory that lies at `below`. Manifests stay.
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

/// Waits until the file system has let go of what was removed while a close was on its way; gives what it
/// still holds.
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

    fn known() -> Known {
        Known { id: 1, contents: Contents::Mail { databases: 0, log_files: 0 } }
    }

    #[test]
    fn what_a_late_close_still_holds_is_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let own = above.path().join("plimsoll-x");
        let hidden =
            above.path().join(format!("{REMOVING}plimsoll-x/.fuse_hidden0000000100000001"));
        fs::create_dir(&own).unwrap();
        fs::write(own.join(".fuse_hidden0000000100000001"), b"").unwrap();
        let close = std::thread::spawn(move || {
            // Once the removal has begun, as the file system does when the close arrives.
            while !hidden.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            fs::remove_file(&hidden).unwrap();
        });
        assert_eq!(remove_own(&own, Some(&known())).unwrap(), Some(1));
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
