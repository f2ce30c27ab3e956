//! Ceilings and single-core score of this host, recorded in each bundle.
//!
//! A measurement takes about ten seconds, so the results are cached in the state directory. The
//! measured ceilings of the load generator are valid until the host restarts or the version of the
//! kernel or of Plimsoll changes. The score is valid for ten minutes, because the speed of a shared
//! host varies. With `PLIMSOLL_CALIBRATE=never` nothing is measured, and the bundle records the
//! values as unknown.

use std::path::PathBuf;

use plimsoll_engine::calibrate::{Calibration, Score, calibrate, score};
use plimsoll_evidence::environment::{self, Environment, ObservationGap};
use plimsoll_sys::clock;
use serde::{Deserialize, Serialize};

use crate::error::{RunnerError, engine_error};
use crate::listener::Listener;
use crate::places::Places;

/// Time for which a score is valid.
const SCORE_VALID_NS: u64 = 600_000_000_000;
/// Environment variable and value that turn the measurement off.
const SWITCH: (&str, &str) = ("PLIMSOLL_CALIBRATE", "never");

/// Cached measurements, with the conditions under which these are valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ceilings {
    /// Version of Plimsoll.
    pub tool_version: String,
    /// Boot id of the kernel.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: String,
    pub calibration: Calibration,
    /// Single-core score.
    pub score: Score,
    /// Time at which the score was measured, in nanoseconds since 1970.
    pub score_taken_unix_ns: u64,
}

/// Measures the ceilings of the load generator and the score of the host again, and saves them.
///
/// # Errors
/// Memory or `/dev/null` is not available, or the state directory is not writable.
pub fn measure(places: &Places, progress: &mut dyn Listener) -> Result<Ceilings, RunnerError> {
    progress.say("measuring the highest rates of this host, which takes about ten seconds");
    let cpu = plimsoll_sys::cpu::allowed().ok().and_then(|cpus| cpus.last().copied());
    let calibration = calibrate(cpu).map_err(|error| engine_error(&error))?;
    let score = score(cpu).map_err(|error| engine_error(&error))?;
    let ceilings = Ceilings {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: boot_id(),
        kernel: kernel(),
        calibration,
        score,
        score_taken_unix_ns: clock::realtime_ns(),
    };
    save(&ceilings, places)?;
    Ok(ceilings)
}

/// Returns the cached values, and measures those that are missing or outdated.
fn cached_or_measured(
    places: &Places,
    progress: &mut dyn Listener,
) -> Result<Ceilings, RunnerError> {
    let cached: Option<Ceilings> = std::fs::read_to_string(path(places))
        .ok()
        // A file of another version is ignored and written again.
        .and_then(|text| serde_json::from_str(&text).ok());
    let is_valid = |cached: &Ceilings| {
        cached.tool_version == env!("CARGO_PKG_VERSION")
            && cached.boot_id == boot_id()
            && cached.kernel == kernel()
    };
    let Some(mut cached) = cached.filter(is_valid) else { return measure(places, progress) };
    let now_ns = clock::realtime_ns();
    if now_ns.abs_diff(cached.score_taken_unix_ns) > SCORE_VALID_NS {
        progress.say("measuring this host's single-core score, which takes two seconds");
        let cpu = plimsoll_sys::cpu::allowed().ok().and_then(|cpus| cpus.last().copied());
        cached.score = score(cpu).map_err(|error| engine_error(&error))?;
        cached.score_taken_unix_ns = now_ns;
        save(&cached, places)?;
    }
    Ok(cached)
}

/// Returns the file with the ceilings of this host's load generator, so that several processes of
/// this host can share it. Measures the ceilings if needed. `None` if measuring is off or fails;
/// each process then reports this itself.
pub fn shared_file(places: &Places, progress: &mut dyn Listener) -> Option<PathBuf> {
    let is_off = std::env::var(SWITCH.0).is_ok_and(|value| value == SWITCH.1);
    let is_there = !is_off && cached_or_measured(places, progress).is_ok();
    is_there.then(|| path(places))
}

/// Adds the ceilings of the load generator and the score of the host to the environment of a run.
pub fn add_to(environment: &mut Environment, places: &Places, progress: &mut dyn Listener) {
    let off = std::env::var(SWITCH.0).is_ok_and(|value| value == SWITCH.1);
    let why = if off {
        format!("{}={} is set", SWITCH.0, SWITCH.1)
    } else {
        match cached_or_measured(places, progress) {
            Ok(ceilings) => {
                environment.cpu_score = Some(ceilings.score.score);
                environment.calibration = Some(evidence(&ceilings.calibration));
                return;
            }
            Err(error) => error.to_string(),
        }
    };
    environment.unknown.push(ObservationGap {
        what: "the highest rates of this host and its single-core score".to_owned(),
        why,
        remedy: "plimsoll calibrate".to_owned(),
    });
}

fn evidence(calibration: &Calibration) -> environment::Calibration {
    let rate = |per_s: u64| Some(per_s as f64);
    environment::Calibration {
        taken_unix_ns: Some(calibration.taken_at_ns),
        null_rate_ops_per_s: rate(calibration.null.operations_per_s),
        ring_rate_ops_per_s: calibration.ring.and_then(|ring| rate(ring.operations_per_s)),
        system_call_ps: Some(calibration.system_call_ps),
        memory_bytes_per_s: rate(calibration.copy_cold_bytes_per_s),
        checksum_bytes_per_s: rate(calibration.checksum_bytes_per_s),
        content_bytes_per_s: rate(calibration.content_bytes_per_s),
        instructions: Some(calibration.instructions.clone()),
    }
}

fn path(places: &Places) -> PathBuf {
    places.state.join("calibration.json")
}

fn save(ceilings: &Ceilings, places: &Places) -> Result<(), RunnerError> {
    let path = path(places);
    let cannot = |error: std::io::Error| {
        RunnerError::environment(format!("cannot write {}: {error}", path.display()))
            .hint("set XDG_STATE_HOME to a directory that you may write to")
    };
    let text = serde_json::to_string_pretty(ceilings)
        .map_err(|error| RunnerError::environment(format!("{}: {error}", path.display())))?;
    std::fs::create_dir_all(&places.state).map_err(cannot)?;
    std::fs::write(&path, text).map_err(cannot)
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}
