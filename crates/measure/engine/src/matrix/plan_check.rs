//! Checks whether a plan's streams can be driven on a kind of target, without touching the target.
//!
//! A dry run makes these checks, and a run makes them before it reserves its target.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Target, TargetKind};
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::StreamPart;
use plimsoll_workload::planned::pace::StreamPace;
use plimsoll_workload::planned::streams;

use super::data_set::{check_memory, memory_bytes, writes_layout};
use super::device::Device;
use crate::EngineError;
use crate::stream::matrix::check_content;

/// Checks names, transfer sizes, content, addresses and rates of all streams. The streams of a block
/// device are checked when it is open, because its size decides.
///
/// # Errors
/// [`EngineError::Config`]: the reason why the streams cannot be driven.
pub fn check_plan(
    plan: &ResolvedPlan,
    target: &Target,
    matrix: &Matrix,
) -> Result<(), EngineError> {
    check_names(target, matrix)?;
    if matches!(target.kind, TargetKind::Device { .. }) {
        return Ok(());
    }
    let configs = streams::streams(matrix, plan.seed, None)?;
    // The null target has no content.
    let unit_bytes = match target.kind {
        TargetKind::Null => None,
        _ => Some(streams::unit_bytes(matrix, &configs)?),
    };
    for (stream, config) in matrix.streams.iter().zip(configs) {
        let read = |path: &Path| fs::read_to_string(path);
        StreamPace::new(stream, config.size_bytes_max(), config.seed, read)?;
        let wrong = |error: &dyn std::fmt::Display| EngineError::Config(error.to_string());
        if let Some(unit_bytes) = unit_bytes {
            let spec = streams::content(stream, config.files.file_size_bytes, unit_bytes, 0);
            let content = Content::new(&spec).map_err(|error| wrong(&error))?;
            check_content(&config, &content).map_err(|error| wrong(&error))?;
        }
        StreamPart::new(config, 0..1).map_err(|error| wrong(&error))?;
    }
    Ok(())
}

/// Rejects data whose generations need too much memory to be tracked. A run tracks them to verify
/// its data, or to keep it. The size of a device is known only when it is open ([`probe_device`]).
///
/// # Errors
/// [`EngineError::Config`]: the memory that tracking needs.
pub fn check_tracking(
    plan: &ResolvedPlan,
    target: &Target,
    matrix: &Matrix,
    keep: bool,
) -> Result<(), EngineError> {
    let untracked = matches!(target.kind, TargetKind::Null | TargetKind::Model { .. });
    if untracked || matches!(target.kind, TargetKind::Device { .. }) || !tracks(plan, matrix, keep)
    {
        return Ok(());
    }
    let configs = streams::streams(matrix, plan.seed, None)?;
    let needs = plan.required_bytes(target);
    let data_bytes = needs.iter().fold(0, |sum: u64, need| sum.saturating_add(need.bytes));
    check_memory(data_bytes, streams::unit_bytes(matrix, &configs)?, memory_bytes())
}

fn tracks(plan: &ResolvedPlan, matrix: &Matrix, keep: bool) -> bool {
    let verified = matrix.streams.iter().any(|stream| stream.verify_reads);
    let stamped = matrix.streams.iter().all(|stream| stream.content.stamps);
    (plan.phases.verify || verified || keep) && stamped
}

/// Opens a device as a run does, looks for data that the run would destroy, checks the streams on
/// its size, and closes it. Returns the size in bytes.
///
/// # Errors
/// A device that cannot be opened, is in use or has data and is not in `destroy`, or streams that
/// cannot be driven on it.
pub fn probe_device(
    plan: &ResolvedPlan,
    matrix: &Matrix,
    path: &Path,
    destroy: &[PathBuf],
    keep: bool,
) -> Result<u64, EngineError> {
    let writes = matrix.writes() || matrix.streams.iter().any(writes_layout);
    let node = Device::open_node(path, None)?;
    let device = Device::claim(&node, writes, destroy, plan.seed)?;
    let configs = streams::streams(matrix, plan.seed, Some(device.size_bytes))?;
    let unit_bytes = streams::unit_bytes(matrix, &configs)?;
    if tracks(plan, matrix, keep) {
        let sizes = configs.iter().map(|config| config.files.file_size_bytes);
        check_memory(sizes.max().unwrap_or(0), unit_bytes, memory_bytes())?;
    }
    Ok(device.size_bytes)
}

/// Rejects metadata operations on a target without names.
pub(super) fn check_names(target: &Target, matrix: &Matrix) -> Result<(), EngineError> {
    use TargetKind::{Directories, Nfs, Path, S3};
    if matches!(target.kind, Path { .. } | Directories { .. } | Nfs { .. } | S3 { .. }) {
        return Ok(());
    }
    let Some(stream) = matrix.streams.iter().find(|stream| stream.metadata_percent > 0.0) else {
        return Ok(());
    };
    let says = format!(
        "stream {}: metadata operations need directories, NFS exports or a bucket; a target of kind {} has no \
         names",
        stream.name,
        target.kind_word()
    );
    Err(EngineError::Config(says))
}
