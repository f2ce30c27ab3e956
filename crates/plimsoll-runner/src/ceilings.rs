//! This host's own ceilings and its single-core score, which each bundle carries.
//!
//! Measuring them takes about ten seconds, so what was measured is kept in the state directory: the
//! ceilings for as long as the host is not restarted and neither kernel nor Plimsoll change, the score
//! for ten minutes, as a shared host is not equally fast all day. With `PLIMSOLL_CALIBRATE=never`
//! nothing is measured, and the bundle says that it is not known.

use std::path::PathBuf;

use plimsoll_engine::calibrate::{Calibration, Score, calibrate, score};
use plimsoll_evidence::environment::{self, Environment, ObservationGap};
use plimsoll_sys::clock;
use serde::{Deserialize, Serialize};

use crate::error::{RunnerError, engine_error};
use crate::listener::Listener;
use crate::places::Places;

/// How long a score is taken as the host's.
const SCORE_NS: u64 = 600_000_000_000;
/// The environment variable that turns measuring off, and its value.
const SWITCH: (&str, &str) = ("PLIMSOLL_CALIBRATE", "never");

/// What was measured, and when it still holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ceilings {
    /// Version of Plimsoll that measured.
    pub tool_version: String,
    /// Identity of the boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: String,
    /// The ceilings.
    pub calibration: Calibration,
    /// The single-core score.
    pub score: Score,
    /// When the score was measured, in nanoseconds since 1970.
    pub score_taken_unix_ns: u64,
}

/// Measures everything anew and keeps it.
///
/// # Errors
/// Memory or `/dev/null` that is not to be had, a state directory that can't be written.
pub fn measure(places: &Places, progress: &mut dyn Listener) -> Result<Ceilings, RunnerError> {
    progress.say("measuring this host's own ceilings, about ten seconds");
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
    keep(&ceilings, places)?;
    Ok(ceilings)
}

/// What is known of this host; measured now where it was not, or does not hold any longer.
fn known(places: &Places, progress: &mut dyn Listener) -> Result<Ceilings, RunnerError> {
    let kept: Option<Ceilings> = std::fs::read_to_string(path(places))
        .ok()
        // A file of another version is measured again, whatever it holds.
        .and_then(|text| serde_json::from_str(&text).ok());
    let holds = |kept: &Ceilings| {
        kept.tool_version == env!("CARGO_PKG_VERSION")
            && kept.boot_id == boot_id()
            && kept.kernel == kernel()
    };
    let Some(mut kept) = kept.filter(holds) else { return measure(places, progress) };
    let now_ns = clock::realtime_ns();
    if now_ns.abs_diff(kept.score_taken_unix_ns) > SCORE_NS {
        progress.say("measuring this host's single-core score, two seconds");
        let cpu = plimsoll_sys::cpu::allowed().ok().and_then(|cpus| cpus.last().copied());
        kept.score = score(cpu).map_err(|error| engine_error(&error))?;
        kept.score_taken_unix_ns = now_ns;
        keep(&kept, places)?;
    }
    Ok(kept)
}

/// Writes what is known of this host into the environment of a run.
pub fn enter(environment: &mut Environment, places: &Places, progress: &mut dyn Listener) {
    let off = std::env::var(SWITCH.0).is_ok_and(|value| value == SWITCH.1);
    let why = if off {
        format!("{}={} is set", SWITCH.0, SWITCH.1)
    } else {
        match known(places, progress) {
            Ok(ceilings) => {
                environment.cpu_score = Some(ceilings.score.score);
                environment.calibration = Some(evidence(&ceilings.calibration));
                return;
            }
            Err(error) => error.to_string(),
        }
    };
    environment.unknown.push(ObservationGap {
        what: "this host's own ceilings and its single-core score".to_owned(),
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

fn keep(ceilings: &Ceilings, places: &Places) -> Result<(), RunnerError> {
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
