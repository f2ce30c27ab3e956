//! The state of the caches when the load begins, as the plan declares it.
//!
//! `cold` drops the page cache of the store's own files, and with privilege the system's.
//! `warm-metadata` has the file system's metadata of the files read, and their data dropped. `warm`
//! reads everything once. An array's own caches are out of reach.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::CacheState;
use plimsoll_sys::clock;
use plimsoll_sys::file::{self, DirectMode, OpenFlags};
use plimsoll_sys::{extents, residency};
use plimsoll_workload::mailbox::{PhaseIo, Scan, ScanKind, Store};

use super::run::Running;
use crate::EngineError;

/// Extents of a file that are asked for: reading them is what warms the metadata.
const EXTENTS_MAX: usize = 1 << 20;

/// Brings the caches into the state that the plan declares; returns the store.
pub(super) fn carry_out(
    running: &mut Running<'_>,
    store: Store,
) -> Result<Option<Store>, EngineError> {
    if running.mail.plan.phases.cache == CacheState::Warm {
        let parts = running.split(store);
        let scan = |part| Scan::new(part, ScanKind::Checksum, PhaseIo::default());
        return running.machines(PhaseKind::Caches, parts.into_iter().map(scan).collect());
    }
    let phase = running.recording.begin(PhaseKind::Caches, clock::monotonic_ns());
    running.mail.watcher.begin(PhaseKind::Caches);
    let metadata = running.mail.plan.phases.cache == CacheState::WarmMetadata;
    let files = files_below(&running.stage.directories);
    for path in &files {
        let opened = open(path)?;
        let engine = |error: plimsoll_sys::SysError| EngineError::system("caches", error.at(path));
        file::sync_data(&opened).map_err(engine)?;
        file::drop_cached(&opened).map_err(engine)?;
    }
    let note = if metadata {
        for path in &files {
            // Where extents can't be listed the open above has still read the inode.
            let _ = extents::extents(&open(path)?, EXTENTS_MAX);
        }
        "data dropped, metadata read".to_owned()
    } else {
        match residency::drop_all_caches() {
            Ok(()) => {
                running.recording.observed.page_cache.system_dropped = Some(true);
                "the files' page cache and the system's caches dropped".to_owned()
            }
            Err(error) => {
                running.recording.observed.page_cache.system_dropped = Some(false);
                format!("the files' page cache dropped; the system's caches not: {error}")
            }
        }
    };
    running.recording.finish(phase, clock::monotonic_ns(), true, note);
    running.mail.watcher.end(&running.recording.phases[phase as usize]);
    Ok(Some(store))
}

fn open(path: &Path) -> Result<std::os::fd::OwnedFd, EngineError> {
    let flags = OpenFlags { direct: DirectMode::Off, ..OpenFlags::default() };
    let opened =
        file::open(path, flags).map_err(|error| EngineError::system("opening a file", error))?;
    Ok(opened.fd)
}

/// Database and log files of a store.
fn files_below(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut stack: Vec<PathBuf> = directories.to_vec();
    while let Some(directory) = stack.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension().and_then(|e| e.to_str()) {
                Some("edb" | "log") => files.push(path),
                _ if path.is_dir() => stack.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files.dedup();
    files
}

/// Bytes of the store's files that the page cache holds, and bytes of the files; `None` where the
/// kernel does not tell.
pub(super) fn resident_bytes(directories: &[PathBuf]) -> Option<(u64, u64)> {
    let (mut resident_bytes, mut files_bytes) = (0, 0);
    for path in files_below(directories) {
        let fd = open(&path).ok()?;
        files_bytes += file::size_bytes(&fd).ok()?;
        resident_bytes += residency::of_file(&fd).ok()?.cached_bytes;
    }
    Some((resident_bytes, files_bytes))
}
