//! Directories of Plimsoll's own below those that a plan names: their lock, their name, their making and
//! their removal.
//!
//! Below each directory that the plan names, a run has one of its own, `plimsoll-NAME`. It holds a
//! manifest of what it is: a directory of that name without one is not ours and is never touched.
//!
//! - `lock`: what keeps runs apart.
//! - `contents`: which names in it are ours.
//! - `find`: the manifest at a path, and where the rest of its data lies now.
//! - `removal`: removing what is ours, and finishing removals that were cut off.
//! - `maps`: what data should hold, in the state directory.
//! - `space`: what a plan's data needs, and what there is.
//! - `clean`: removing what killed runs left.

pub(crate) mod clean;
pub(crate) mod contents;
pub(crate) mod find;
pub(crate) mod lock;
pub(crate) mod maps;
pub(crate) mod removal;
pub(crate) mod space;

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use plimsoll_sys::SysError;
use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::contents::Contents;
pub(crate) use self::find::{find_manifest, read_manifest};
pub(crate) use self::lock::{Locks, lock_all, lock_shared};
pub(crate) use self::removal::{finish_removals, is_ours, make_own, remove_own};
pub(crate) use self::space::check_space;
use crate::EngineError;
use crate::allowed::AllowedPlaces;
use crate::open_target::beneath::new_file;
use crate::open_target::held::{OwnDirectory, TargetDirectory};
pub(crate) use crate::open_target::{NOTHING, sys};

/// Name of a store's own directory.
pub(crate) fn own_name(plan: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("plimsoll-{}", plan.chars().map(safe).collect::<String>())
}

/// The error of a call on a path of a target. An error without an `errno` says itself what is wrong.
pub(crate) fn failed(
    doing: &str,
    call: &'static str,
    path: &Path,
    error: &std::io::Error,
) -> EngineError {
    match error.raw_os_error() {
        Some(_) => EngineError::system(doing, sys(call, path, error)),
        None => EngineError::Config(format!("{doing}: {}: {error}", path.display())),
    }
}

/// Makes the own directories of a run and opens them, one for each target directory; gives also the
/// identities of what was there before and is removed. Several paths may lead to one target directory.
///
/// # Errors
/// One that holds something of somebody else's: those made so far are removed again.
pub(crate) fn make_all(
    targets: &[TargetDirectory],
    name: &str,
) -> Result<(Vec<OwnDirectory>, Vec<u64>), EngineError> {
    let mut made: Vec<OwnDirectory> = Vec::new();
    let mut replaced = Vec::new();
    for target in targets {
        let is_made = |own: &OwnDirectory| matches!((own.parent.identity(), target.identity()), (Ok(a), Ok(b)) if a == b);
        let own = match made.iter().find(|own| is_made(own)) {
            Some(own) => again(own, target),
            None => make_own(target, name.as_ref()).map(|(own, was)| {
                replaced.extend(was);
                own
            }),
        };
        match own {
            Ok(own) => made.push(own),
            Err(error) => {
                for own in &made {
                    // They are empty; what can't be removed matters less than the error.
                    let _ = unlinkat(&own.parent.fd, own.name(), AtFlags::REMOVEDIR);
                }
                return Err(error);
            }
        }
    }
    Ok((made, replaced))
}

/// The same own directory by another path of its target directory.
fn again(own: &OwnDirectory, target: &TargetDirectory) -> Result<OwnDirectory, EngineError> {
    let path = target.path.join(own.name());
    let fd = own.fd.try_clone();
    let fd = fd.map_err(|error| EngineError::system("opening", sys("dup", &path, &error)))?;
    Ok(OwnDirectory { path, parent: target.clone(), fd })
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
    /// Identity of what it describes.
    fn id(&self) -> u64;
    /// Name of the plan that made it.
    fn plan(&self) -> &str;
    /// The names in its directories that are its own.
    fn contents(&self) -> Contents;
    /// Whether its numbers can be worked with.
    ///
    /// # Errors
    /// A number that no run of Plimsoll writes.
    fn check(&self) -> Result<(), String>;
}

/// Writes the manifest to each of `directories`: whole or not at all.
///
/// # Errors
/// A directory that can't be written.
pub(crate) fn write_manifest<M: Manifested>(
    manifest: &M,
    directories: &[OwnDirectory],
) -> Result<(), EngineError> {
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| EngineError::Config(format!("the manifest of a {}: {error}", M::WHAT)))?;
    let temporary = format!(".{}.new", M::FILE);
    for (at, own) in directories.iter().enumerate() {
        if directories[..at].iter().any(|before| before.path == own.path) {
            continue;
        }
        let write = || {
            match unlinkat(&own.fd, &temporary, AtFlags::empty()) {
                Err(Errno::NOENT) | Ok(()) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut file = File::from(new_file(own.fd.as_fd(), Path::new(&temporary))?);
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()?;
            Ok(renameat(&own.fd, &temporary, &own.fd, M::FILE)?)
        };
        write().map_err(|error| {
            let doing = format!("writing the manifest of a {}", M::WHAT);
            EngineError::system(doing, sys("write", &own.path.join(M::FILE), &error))
        })?;
    }
    Ok(())
}

/// Directories that a plan names, open: each is there, and is in what is allowed.
///
/// # Errors
/// One that is missing, is no directory, or is not allowed.
pub(crate) fn named_directories<'a>(
    names: impl Iterator<Item = &'a String>,
    needs: &str,
    allowed: Option<&AllowedPlaces>,
) -> Result<Vec<TargetDirectory>, EngineError> {
    let looking = |call, path: &Path, error: &std::io::Error| {
        failed("looking at a target", call, path, error)
    };
    names
        .map(|named| {
            let path = Path::new(named);
            // This mounts what is mounted on demand.
            let metadata = fs::metadata(path).map_err(|error| looking("stat", path, &error))?;
            let no_directory = || {
                let error = SysError::new("open", libc::ENOTDIR).at(path);
                EngineError::system(needs, error)
            };
            if !metadata.is_dir() {
                return Err(no_directory());
            }
            let open = TargetDirectory::open(path).map_err(|error| match error.raw_os_error() {
                Some(libc::ENOTDIR) => no_directory(),
                _ => looking("open", path, &error),
            })?;
            // What is open can no longer be replaced: this is the directory that is used.
            allowed.map_or(Ok(()), |allowed| allowed.check_directory(named, &open.path))?;
            Ok(open)
        })
        .collect()
}
