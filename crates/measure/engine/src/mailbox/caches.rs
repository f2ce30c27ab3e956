//! Brings the caches into the planned state before the load of a mail store starts: see
//! [`crate::caches`].

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::CacheState;
use plimsoll_sys::clock;
use plimsoll_workload::mailbox::{PhaseIo, Scan, ScanKind, Store};

use super::run_state::MailRunState;
use crate::EngineError;
use crate::caches;
use crate::open_target::HeldTarget;
use crate::open_target::openat::{directory_in, names_in};
use crate::step::Stage;

/// Brings the caches into the planned state, and returns the mail store.
pub(super) fn prepare(
    run: &mut MailRunState<'_>,
    store: Store,
) -> Result<Option<Store>, EngineError> {
    if run.mail.plan.phases.cache == CacheState::Warm {
        let parts = run.split(store);
        let scan = |part| Scan::new(part, ScanKind::Warm, PhaseIo::default());
        return run.run_machines(PhaseKind::Caches, parts.into_iter().map(scan).collect());
    }
    let phase = run.recording.begin(PhaseKind::Caches, clock::monotonic_ns());
    run.mail.watcher.begin(PhaseKind::Caches);
    let files = files_below(&run.stage.held);
    let metadata = run.mail.plan.phases.cache == CacheState::WarmMetadata;
    let dropped = caches::drop_data(&run.stage.held, files, metadata)?;
    run.recording.observed.page_cache.system_dropped = dropped.system;
    run.recording.finish(phase, clock::monotonic_ns(), true, dropped.note);
    run.mail.watcher.end(&run.recording.phases[phase as usize]);
    Ok(Some(store))
}

/// Returns the paths of the database files and log files of a mail store.
pub(super) fn files_below(held: &HeldTarget) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let is_file = |name: &OsString| {
        matches!(Path::new(name).extension().and_then(|e| e.to_str()), Some("edb" | "log"))
    };
    for own in held.each_directory() {
        let (directories, found): (Vec<_>, Vec<_>) = names_in(own.fd.as_fd())
            .unwrap_or_default()
            .into_iter()
            .partition(|name| name.as_bytes().ends_with(b"-log"));
        files.extend(found.iter().filter(|name| is_file(name)).map(|name| own.path.join(name)));
        for directory in directories {
            let logs = directory_in(own.fd.as_fd(), Path::new(&directory));
            let logs = logs.ok().and_then(|logs| names_in(logs.as_fd()).ok()).unwrap_or_default();
            let logs = logs.iter().filter(|name| is_file(name));
            files.extend(logs.map(|name| own.path.join(&directory).join(name)));
        }
    }
    files.sort();
    files
}

/// Calls [`caches::resident_bytes`] for the files of the mail store.
pub(super) fn resident_bytes(stage: &Stage) -> Option<(u64, u64)> {
    caches::resident_bytes(&stage.held, files_below)
}
