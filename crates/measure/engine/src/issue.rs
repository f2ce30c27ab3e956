//! Translates the I/O settings of the plan into settings of the backend. Converts the backend's
//! report to evidence.

use std::path::{Path, PathBuf};

use plimsoll_evidence::run::{Clock as ClockReport, Engine, PathEngine, Polling};
use plimsoll_plan::{DirectIo, EngineChoice, IoChoice};
use plimsoll_sys::{clock, cpu};

use crate::backend::{self, BackendKind, BackendReport, Direct, Prefer};

/// Time in ns after which the engine gives up on storage that does not respond. It applies if the
/// plan sets no timeout.
pub(crate) const OUTAGE_NS_MAX: u64 = 600_000_000_000;

/// Number of clock readings with which the time of one reading is measured.
const CLOCK_READINGS: u32 = 10_000;

/// Returns the form of queue that the plan prefers.
pub(crate) fn prefer(io: IoChoice) -> Prefer {
    match io {
        IoChoice::Auto => Prefer::Auto,
        IoChoice::IoUring => Prefer::Uring,
        IoChoice::Threads => Prefer::Threads,
    }
}

/// Returns the direct I/O mode that the plan requests.
pub(crate) fn direct(direct: DirectIo) -> Direct {
    match direct {
        DirectIo::Auto => Direct::Auto,
        DirectIo::Required => Direct::Required,
        DirectIo::Off => Direct::Off,
    }
}

/// Decides how each of `threads` driving threads polls on this host. The decision depends on the
/// plan's setting and on the CPUs that this process may use.
pub(crate) fn polling(engine: &EngineChoice, threads: usize) -> Polling {
    let allowed = cpu::allowed().map_or(1.0, |cpus| cpus.len() as f64);
    let quota = plimsoll_observe::limits::read().cpus;
    backend::polling(engine.spin, threads, quota.map_or(allowed, |quota| quota.min(allowed)))
}

/// Records how a thread issued its I/O. For a file in one of `directories`, the record contains the
/// path of that directory instead of the path of the file.
pub(crate) fn note(engine: &mut Engine, report: &BackendReport, directories: &[PathBuf]) {
    engine.kind = match report.kind {
        BackendKind::Uring => "io_uring",
        BackendKind::Threads | BackendKind::Inline => "threads",
        BackendKind::Null => "null",
        BackendKind::Nfs => "nfs",
        BackendKind::S3 => "s3",
    }
    .to_owned();
    engine.why.clone_from(&report.why);
    engine.ring_features.clone_from(&report.ring_features);
    engine.ring_refusals.clone_from(&report.ring_refusals);
    for file in &report.files {
        let directory = directory_of(directories, Path::new(&file.path));
        let known = engine.paths.iter_mut().find(|path| path.path == directory);
        match known {
            Some(path) => {
                path.direct &= file.direct;
                path.direct_refused = path.direct_refused.map(|known| known | file.direct_refused);
            }
            None => engine.paths.push(PathEngine {
                path: directory,
                direct: file.direct,
                why: file.why_not_direct.clone().unwrap_or_default(),
                direct_refused: Some(file.direct_refused),
            }),
        }
    }
}

/// Records that the I/O went to servers and bypassed the caches of this host.
pub(crate) fn note_remote(engine: &mut Engine, directories: &[String]) {
    for directory in directories {
        if !engine.paths.iter().any(|path| path.path == *directory) {
            engine.paths.push(PathEngine {
                path: directory.clone(),
                direct: true,
                ..PathEngine::default()
            });
        }
    }
}

fn directory_of(directories: &[PathBuf], path: &Path) -> String {
    let directory = directories.iter().find(|directory| path.starts_with(directory));
    directory.map_or_else(|| path.display().to_string(), |d| d.display().to_string())
}

/// Measures the resolution of the clock and the time that one reading takes.
pub(crate) fn clock() -> ClockReport {
    let mut clock = clock::Clock::new();
    let quality = clock::measure(&mut clock, CLOCK_READINGS);
    let source = match quality.source {
        clock::ClockSource::CycleCounter => "processor cycles, anchored to CLOCK_MONOTONIC",
        clock::ClockSource::Kernel => "CLOCK_MONOTONIC",
    };
    ClockReport {
        source: source.to_owned(),
        resolution_ns: quality.resolution_ns,
        cost_ps: quality.cost_ns_hundredths * 10,
    }
}

/// Returns the endpoints from which a run of this plan collects metrics.
pub(crate) fn endpoints(
    observe: &plimsoll_plan::Observe,
) -> Vec<plimsoll_observe::metrics::Endpoint> {
    let endpoint =
        |requested: &plimsoll_plan::MetricsEndpoint| plimsoll_observe::metrics::Endpoint {
            url: requested.url.clone(),
            interval_ns: requested.interval_ns,
            names: requested.names.clone(),
        };
    observe.metrics.iter().map(endpoint).collect()
}
