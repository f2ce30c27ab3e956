//! Directories that Plimsoll creates for a run inside the directories of the plan: their locks and
//! names, and how they are created and removed.
//!
//! In each directory of the plan, a run creates its own directory, `plimsoll-NAME`. A manifest in
//! the run's directory describes its contents. If a directory has such a name but contains no
//! manifest, it does not belong to Plimsoll, and Plimsoll never changes it.
//!
//! - `lock`: the lock that prevents two runs from using one target at the same time.
//! - `contents`: the names of files and directories that belong to the data of a run.
//! - `find_manifest`: finds the manifest at a path, and the current location of the data that it
//!   describes.
//! - `removal`: the removal of data that Plimsoll created, and the completion of interrupted
//!   removals.
//! - `maps`: the expected contents of the data, which are stored in the state directory.
//! - `space`: the space that a plan requires, and the space that is free.
//! - `clean`: the removal of data that killed runs left.

pub(crate) mod clean;
pub(crate) mod contents;
pub(crate) mod find_manifest;
pub(crate) mod lock;
pub(crate) mod maps;
pub(crate) mod removal;
pub(crate) mod space;

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use plimsoll_sys::{SysError, file, interrupted};
use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::contents::Contents;
pub(crate) use self::find_manifest::{find_manifest, read_manifest};
pub(crate) use self::lock::{Locks, lock_all, lock_shared};
pub(crate) use self::removal::{create_own, finish_removals, is_own_directory, remove_own};
pub(crate) use self::space::check_space;
use crate::allow_list::AllowList;
use crate::open_target::HeldTarget;
use crate::open_target::handles::{OwnDirectory, TargetDirectory};
use crate::open_target::openat::new_file;
pub(crate) use crate::open_target::{DEV_NULL, sys_error};
use crate::{EngineError, blocking_call};

/// Returns the name of the directory that a run creates for itself.
pub(crate) fn own_name(plan: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("plimsoll-{}", plan.chars().map(safe).collect::<String>())
}

/// Converts a failed call on a target's path to an engine error. If the failed call has no `errno`,
/// its error already states the cause.
pub(crate) fn failed(
    doing: &str,
    call: &'static str,
    path: &Path,
    error: &std::io::Error,
) -> EngineError {
    match error.raw_os_error() {
        Some(_) => EngineError::system(doing, sys_error(call, path, error)),
        None => EngineError::Config(format!("{doing}: {}: {error}", path.display())),
    }
}

/// Creates and opens the run's own directory in each target directory. Also returns the identities
/// of the data of earlier runs that was removed. Several paths may refer to the same target
/// directory.
///
/// # Errors
/// Fails if a file or directory that does not belong to Plimsoll has the name of the run's own
/// directory. In this case, the directories that were already created are removed again.
pub(crate) fn create_own_directories(
    targets: &[TargetDirectory],
    name: &str,
) -> Result<(Vec<OwnDirectory>, Vec<u64>), EngineError> {
    let mut made: Vec<OwnDirectory> = Vec::new();
    let mut replaced = Vec::new();
    for target in targets {
        let is_made = |own: &OwnDirectory| matches!((own.parent.identity(), target.identity()), (Ok(a), Ok(b)) if a == b);
        let own = match made.iter().find(|own| is_made(own)) {
            Some(own) => reopen(own, target),
            None => create_own(target, name.as_ref()).map(|(own, was)| {
                replaced.extend(was);
                own
            }),
        };
        match own {
            Ok(own) => made.push(own),
            Err(error) => {
                for own in &made {
                    // The directories are still empty. An error of this removal is ignored: the
                    // caller must receive the first error.
                    let _ = unlinkat(&own.parent.fd, own.name(), AtFlags::REMOVEDIR);
                }
                return Err(error);
            }
        }
    }
    Ok((made, replaced))
}

/// Opens the run's own directory again, through another path of its target directory.
fn reopen(own: &OwnDirectory, target: &TargetDirectory) -> Result<OwnDirectory, EngineError> {
    let path = target.path.join(own.name());
    let fd = own.fd.try_clone();
    let fd = fd.map_err(|error| EngineError::system("opening", sys_error("dup", &path, &error)))?;
    Ok(OwnDirectory { path, parent: target.clone(), fd })
}

/// Manifest that describes a mail store or a data set.
pub(crate) trait DataManifest: Serialize + DeserializeOwned {
    /// Name of the manifest file.
    const FILE: &'static str;
    /// Name of the kind of data, for messages.
    const WHAT: &'static str;
    /// Newest version of the manifest that this build can read.
    const VERSION: u32;

    fn version(&self) -> u32;
    /// Returns the identity of the data that the manifest describes.
    fn id(&self) -> u64;
    fn plan(&self) -> &str;
    /// Returns the names of files and directories that belong to the data.
    fn contents(&self) -> Contents;
    /// Validates the numbers and paths in the manifest.
    ///
    /// # Errors
    /// Fails if a value cannot come from a run of Plimsoll.
    fn check(&self) -> Result<(), String>;
}

/// Time limit for writing a manifest. It is long, because the flush of the manifest may also write
/// cached data of the load. The next constant is the time limit after the operator's request to
/// stop.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(600);
const MANIFEST_TIMEOUT_AFTER_STOP: Duration = Duration::from_secs(20);

/// Writes the manifest to each directory of a target. Each write is atomic.
///
/// # Errors
/// Fails if a directory cannot be written, or if its file system does not respond within ten
/// minutes.
pub(crate) fn write_manifest<M: DataManifest>(
    manifest: &M,
    held: &HeldTarget,
) -> Result<(), EngineError> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| {
        EngineError::Config(format!("cannot encode the manifest of a {}: {error}", M::WHAT))
    })?;
    let what = format!("the manifest of a {}", M::WHAT);
    let held = held.clone();
    blocking_call::run_with_limits(
        &what,
        MANIFEST_TIMEOUT,
        MANIFEST_TIMEOUT_AFTER_STOP,
        move || {
            held.each_directory().try_for_each(|own| {
                write_atomically(own, M::FILE, &text).map_err(|error| {
                    let doing = format!("writing the manifest of a {}", M::WHAT);
                    EngineError::system(doing, sys_error("write", &own.path.join(M::FILE), &error))
                })
            })
        },
    )
    .flatten()
}

/// Replaces the text of a file in the run's own directory.
fn write_atomically(own: &OwnDirectory, name: &str, text: &str) -> std::io::Result<()> {
    let temporary = format!(".{name}.new");
    match unlinkat(&own.fd, &temporary, AtFlags::empty()) {
        Err(Errno::NOENT) | Ok(()) => {}
        Err(errno) => return Err(errno.into()),
    }
    let file = File::from(new_file(own.fd.as_fd(), Path::new(&temporary))?);
    interrupted::write_all(&file, text.as_bytes())?;
    file::sync_all(&file.into()).map_err(|error| std::io::Error::from_raw_os_error(error.errno))?;
    Ok(renameat(&own.fd, &temporary, &own.fd, name)?)
}

/// Opens the directories of a plan. Each directory must exist, and the allow-list must permit it.
///
/// # Errors
/// Fails if a directory is missing, is not a directory, or is not allowed.
pub(crate) fn named_directories<'a>(
    names: impl Iterator<Item = &'a String>,
    needs: &str,
    allowed: Option<&AllowList>,
) -> Result<Vec<TargetDirectory>, EngineError> {
    let lookup_error =
        |call, path: &Path, error: &std::io::Error| failed("examining a target", call, path, error);
    names
        .map(|named| {
            let path = Path::new(named);
            // `stat` causes automounts to be mounted.
            let metadata =
                fs::metadata(path).map_err(|error| lookup_error("stat", path, &error))?;
            let no_directory = || {
                let error = SysError::new("open", libc::ENOTDIR).at(path);
                EngineError::system(needs, error)
            };
            if !metadata.is_dir() {
                return Err(no_directory());
            }
            let open = TargetDirectory::open(path).map_err(|error| match error.raw_os_error() {
                Some(libc::ENOTDIR) => no_directory(),
                _ => lookup_error("open", path, &error),
            })?;
            // The check uses the open directory. After it was opened, nobody can replace it.
            allowed.map_or(Ok(()), |allowed| allowed.check_directory(named, &open.path))?;
            Ok(open)
        })
        .collect()
}
