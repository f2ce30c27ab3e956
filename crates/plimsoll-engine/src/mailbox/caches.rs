//! The state of the caches when the load begins, for a mail store: see [`crate::caches`].

use std::fs;
use std::path::PathBuf;

use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::CacheState;
use plimsoll_sys::clock;
use plimsoll_workload::mailbox::{PhaseIo, Scan, ScanKind, Store};

use super::running::Running;
use crate::EngineError;
use crate::caches;
use crate::step::Stage;

/// Brings the caches into the state that the plan declares; returns the store.
pub(super) fn carry_out(
    running: &mut Running<'_>,
    store: Store,
) -> Result<Option<Store>, EngineError> {
    if running.mail.plan.phases.cache == CacheState::Warm {
        let parts = running.split(store);
        let scan = |part| Scan::new(part, ScanKind::Warm, PhaseIo::default());
        return running.machines(PhaseKind::Caches, parts.into_iter().map(scan).collect());
    }
    let phase = running.recording.begin(PhaseKind::Caches, clock::monotonic_ns());
    running.mail.watcher.begin(PhaseKind::Caches);
    let files = files_below(&running.stage.directories);
    let metadata = running.mail.plan.phases.cache == CacheState::WarmMetadata;
    let dropped = caches::drop_data(&running.stage.held, &files, metadata)?;
    running.recording.observed.page_cache.system_dropped = dropped.system;
    running.recording.finish(phase, clock::monotonic_ns(), true, dropped.note);
    running.mail.watcher.end(&running.recording.phases[phase as usize]);
    Ok(Some(store))
}

/// Database and log files of a store.
pub(super) fn files_below(directories: &[PathBuf]) -> Vec<PathBuf> {
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

/// As [`caches::resident_bytes`], of the store's files.
pub(super) fn resident_bytes(stage: &Stage) -> Option<(u64, u64)> {
    caches::resident_bytes(&stage.held, &files_below(&stage.directories))
}
