//! Brings the caches into the state that the plan requests for the start of the load.
//!
//! `cold` drops the page cache of the target's own files and, if the process is privileged, all
//! caches of the system. `warm-metadata` reads the metadata of the files and drops their data from
//! the page cache. `warm` reads all data once. The caches inside a storage array are not affected.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_observe::{Observer, TargetFacts};
use plimsoll_sys::file::{self, DirectMode, OpenFlags};
use plimsoll_sys::{extents, residency};

use crate::open_target::HeldTarget;
use crate::{EngineError, blocking_call};

/// Maximum number of extents whose description is read per file, to warm the file's metadata.
const EXTENTS_MAX: usize = 1 << 20;

/// After the operator's request to stop, the run abandons the dropping of caches after this time.
const DROP_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for reading how much of the files is in the page cache.
const RESIDENCY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for reading the extents of the files and the properties of their file systems.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Result of dropping caches.
pub(crate) struct CacheDropReport {
    /// True if the caches of the system were also dropped; `None` if the run did not request that.
    pub system: Option<bool>,
    /// Sentence that describes the result.
    pub note: String,
}

/// Drops the page cache of `files`. If `metadata` is true, the function then reads the metadata of
/// the files. Otherwise, it also drops the caches of the system.
///
/// # Errors
/// Fails if a file can't be opened or synced. Also fails if the target does not respond after the
/// operator's request to stop.
pub(crate) fn drop_data(
    held: &HeldTarget,
    files: Vec<PathBuf>,
    metadata: bool,
) -> Result<CacheDropReport, EngineError> {
    let held = held.clone();
    blocking_call::run_until_stop("the target", DROP_TIMEOUT, move || {
        drop_data_of(&held, &files, metadata)
    })
    .flatten()
}

fn drop_data_of(
    held: &HeldTarget,
    files: &[PathBuf],
    metadata: bool,
) -> Result<CacheDropReport, EngineError> {
    for path in files {
        let opened = open(held, path)?;
        let engine = |error: plimsoll_sys::SysError| {
            EngineError::system("dropping the page cache", error.at(path))
        };
        file::sync_data(&opened).map_err(engine)?;
        file::drop_cached(&opened).map_err(engine)?;
    }
    if metadata {
        for path in files {
            // The inode of the file was read when the file was opened, even if the list of its
            // extents cannot be read.
            let _ = extents::extents(&open(held, path)?, EXTENTS_MAX);
        }
        return Ok(CacheDropReport {
            system: None,
            note: "the data of the files was dropped from the page cache; their metadata was read"
                .to_owned(),
        });
    }
    Ok(match residency::drop_all_caches() {
        Ok(()) => {
            let note = "the files' page cache and the system's caches were dropped".to_owned();
            CacheDropReport { system: Some(true), note }
        }
        Err(error) => {
            let note = format!(
                "the files' page cache was dropped, but the system's caches were not: {error}"
            );
            CacheDropReport { system: Some(false), note }
        }
    })
}

fn open(held: &HeldTarget, path: &Path) -> Result<OwnedFd, EngineError> {
    let flags = OpenFlags { direct: DirectMode::Off, ..OpenFlags::default() };
    let opened =
        held.open(path, flags).map_err(|error| EngineError::system("opening a file", error))?;
    Ok(opened.fd)
}

/// Returns two numbers: how many bytes of the files are in the page cache, and the total size of
/// the files. Returns `None` if the kernel does not report these numbers in time, because a write
/// in progress locks the file.
pub(crate) fn resident_bytes(
    held: &HeldTarget,
    files: impl FnOnce(&HeldTarget) -> Vec<PathBuf> + Send + 'static,
) -> Option<(u64, u64)> {
    let held = held.clone();
    blocking_call::run_with_timeout(RESIDENCY_TIMEOUT, move || {
        let (mut resident_bytes, mut files_bytes) = (0, 0);
        for path in files(&held) {
            let fd = open(&held, &path).ok()?;
            files_bytes += file::size_bytes(&fd).ok()?;
            resident_bytes += residency::of_file(&fd).ok()?.cached_bytes;
        }
        Some((resident_bytes, files_bytes))
    })
}

/// Reads the properties of the target's files for the observer. If the file system does not respond
/// in time, these properties are unknown.
pub(crate) fn examine_files(
    observer: &mut Observer,
    held: &HeldTarget,
    files: impl FnOnce(&HeldTarget) -> Vec<PathBuf> + Send + 'static,
) {
    let (held, paths) = (held.clone(), observer.paths().to_vec());
    let found = blocking_call::run_with_timeout(EXAMINATION_TIMEOUT, move || {
        Some(TargetFacts::examine(&paths, &files(&held)))
    });
    let unanswered = || TargetFacts::unknown("the file system did not respond".to_owned());
    observer.use_target_facts(found.unwrap_or_else(unanswered));
}
