//! Directories of Plimsoll's own below those that a plan names: their lock, their name, their making and
//! their removal.
//!
//! Below each directory that the plan names, a run has one of its own, `plimsoll-NAME`. It holds a
//! manifest of what it is: a directory of that name without one is not ours and is never touched.
//!
//! - `lock`: what keeps runs apart.
//! - `beneath`: opening what lies in a directory of ours, and nothing else.
//! - `contents`: which names in it are ours.
//! - `find`: the manifest at a path, and where the rest of its data lies now.
//! - `removal`: removing what is ours, and finishing removals that were cut off.
//! - `maps`: what data should hold, in the state directory.
//! - `space`: what a plan's data needs, and what there is.
//! - `clean`: removing what killed runs left.

pub(crate) mod beneath;
pub(crate) mod clean;
pub(crate) mod contents;
pub(crate) mod find;
pub(crate) mod lock;
pub(crate) mod maps;
pub(crate) mod removal;
pub(crate) mod space;

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::contents::Contents;
pub(crate) use self::find::{find_manifest, read_manifest};
pub(crate) use self::lock::{Locks, lock_all, lock_shared};
pub(crate) use self::removal::{finish_removals, is_ours, make_own, remove_own};
pub(crate) use self::space::check_space;
use crate::EngineError;

/// Opened in the place of a file that is missing, from which nothing is read.
pub(crate) const NOTHING: &str = "/dev/null";

/// Name of a store's own directory.
pub(crate) fn own_name(plan: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("plimsoll-{}", plan.chars().map(safe).collect::<String>())
}

pub(crate) fn sys(call: &'static str, path: &Path, error: &std::io::Error) -> SysError {
    SysError::from_io(call, error).at(path)
}

/// Makes the own directories of a run; gives the identities of what was there before and is removed.
///
/// # Errors
/// One that holds something of somebody else's: those made so far are removed again.
pub(crate) fn make_all(directories: &[PathBuf]) -> Result<Vec<u64>, EngineError> {
    let mut replaced = Vec::new();
    for (made, directory) in directories.iter().enumerate() {
        match make_own(directory) {
            Ok(was) => replaced.extend(was),
            Err(error) => {
                // Those made so far are empty; what can't be removed matters less than the error.
                directories[..made].iter().for_each(|empty| drop(fs::remove_dir(empty)));
                return Err(error);
            }
        }
    }
    Ok(replaced)
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
