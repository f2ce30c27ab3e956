//! Checks in a dry run that depend on the host: whether there is enough memory to track the data,
//! and whether the device is usable.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Stream, Target, TargetKind};
use plimsoll_workload::planned::streams;

use super::alignment;
use super::device::Device;
use super::memory::{check_memory, memory_bytes};
use crate::EngineError;

/// Rejects data if tracking its generations would need too much memory. A run tracks generations to
/// verify its data, or to keep the data for a later run. The size of a device is known only after
/// it was opened, so [`probe_device`] performs this check for a device.
///
/// # Errors
/// [`EngineError::Config`] if tracking needs too much memory.
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

/// Opens a device in the same way as a run, and searches it for data that the run would destroy.
/// Checks the streams against the size of the device, and closes the device. Returns this size in
/// bytes.
///
/// # Errors
/// Fails if the device cannot be opened or is in use. Also fails if it contains data and `destroy`
/// does not contain its path, or if the streams cannot be driven on it.
pub fn probe_device(
    plan: &ResolvedPlan,
    matrix: &Matrix,
    path: &Path,
    destroy: &[PathBuf],
    keep: bool,
) -> Result<u64, EngineError> {
    let writes = matrix.writes() || matrix.streams.iter().any(Stream::writes_layout);
    let node = Device::open_node(path, None)?;
    let device = Device::claim(&node, writes, destroy, plan.seed)?;
    let configs = streams::streams(matrix, plan.seed, Some(device.size_bytes))?;
    alignment::check_device(matrix, &configs, &device)?;
    let unit_bytes = streams::unit_bytes(matrix, &configs)?;
    if tracks(plan, matrix, keep) {
        let sizes = configs.iter().map(|config| config.files.file_size_bytes);
        check_memory(sizes.max().unwrap_or(0), unit_bytes, memory_bytes())?;
    }
    Ok(device.size_bytes)
}
