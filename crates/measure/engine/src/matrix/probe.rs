//! Checks in a dry run that depend on the host: whether there is enough memory to track the data,
//! and whether the device is usable.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Matrix, ResolvedPlan, Target, TargetKind};
use plimsoll_workload::planned::streams;
use plimsoll_workload::stamp::Generations;

use super::alignment;
use super::data_set::{memory_bytes, writes_layout};
use super::device::Device;
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
    let writes = matrix.writes() || matrix.streams.iter().any(writes_layout);
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

/// Rejects a data set whose tracking would need more than half of the host's memory. Tracking needs
/// five bytes for each unit.
pub(super) fn check_memory(
    data_bytes: u64,
    unit_bytes: u32,
    memory_bytes: Option<u64>,
) -> Result<(), EngineError> {
    let units = data_bytes / u64::from(unit_bytes.max(1));
    let needed_bytes = units.saturating_mul(Generations::BYTES_PER_UNIT as u64);
    match memory_bytes {
        Some(memory_bytes) if needed_bytes > memory_bytes / 2 => Err(EngineError::Config(format!(
            "tracking the content of {data_bytes} bytes block by block takes {needed_bytes} bytes \
             of memory, but only {memory_bytes} are available: turn off phases.verify, verify_reads \
             and --keep, or reduce the data size in the plan"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        // Data of 1 TiB contains 2^28 blocks of 4 KiB. Their generations take 1.25 GiB.
        assert!(check_memory(1 << 40, 4096, Some(4 << 30)).is_ok());
        let error = check_memory(1 << 40, 4096, Some(2 << 30)).unwrap_err().to_string();
        assert!(error.contains("1342177280 bytes of memory"), "{error}");
        assert!(check_memory(u64::MAX, 512, Some(1 << 40)).is_err());
        assert!(check_memory(1 << 40, 4096, None).is_ok(), "unknown is not too little");
    }
}
