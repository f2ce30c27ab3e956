//! Checks that a target accepts the transfers of a plan with direct I/O. The kernel rejects a direct
//! transfer (EINVAL) whose offset or size is not a multiple of the logical block of the device.
//! Without this check, a run would overwrite its target before the first transfer fails.
//!
//! Buffered I/O would accept each transfer. With `direct = "auto"`, a run nevertheless does not use
//! it for this reason, because a page cache below the load changes what is measured.

use std::path::{Path, PathBuf};

use plimsoll_plan::{DirectIo, Matrix};
use plimsoll_sys::file::{DirectMode, OpenFlags};
use plimsoll_workload::matrix::StreamConfig;

use super::device::Device;
use super::manifest::DataFile;
use crate::EngineError;
use crate::open_target::HeldTarget;

/// Checks the transfers of all streams against the size and the logical block of a device.
///
/// # Errors
/// [`EngineError::Config`] if the device would reject a transfer.
pub(super) fn check_device(
    matrix: &Matrix,
    configs: &[StreamConfig],
    device: &Device,
) -> Result<(), EngineError> {
    let largest = configs.iter().flat_map(StreamConfig::all_sizes_bytes).max().unwrap_or(0);
    if largest > device.size_bytes {
        return Err(EngineError::Config(format!(
            "{} has {} bytes, but the plan has transfers of {largest} bytes",
            device.path.display(),
            device.size_bytes
        )));
    }
    let block_bytes = device.logical_block_bytes.map_or(0, u64::from);
    check_transfers(matrix, configs, &device.path, block_bytes)
}

/// Checks the transfers of all streams against the alignment that the file systems of the data
/// require. Opens one file in each directory.
///
/// # Errors
/// [`EngineError::Config`] if a file system would reject a transfer.
pub(super) fn check_files(
    matrix: &Matrix,
    configs: &[StreamConfig],
    files: &[DataFile],
    held: &HeldTarget,
    directories: &[PathBuf],
) -> Result<(), EngineError> {
    for directory in directories {
        let Some(file) = files.iter().find(|file| file.path.starts_with(directory)) else {
            continue;
        };
        let flags = OpenFlags { direct: DirectMode::Auto, ..OpenFlags::default() };
        // If the file cannot be opened, the run reports the error when it opens the file again.
        let Ok(opened) = held.open(&file.path, flags) else { continue };
        let reported = opened.direct_offset_align_bytes.filter(|_| opened.is_direct());
        check_transfers(matrix, configs, directory, reported.map_or(0, u64::from))?;
    }
    Ok(())
}

/// `block_bytes` is 0 if it is unknown, or if all sizes are permitted.
fn check_transfers(
    matrix: &Matrix,
    configs: &[StreamConfig],
    path: &Path,
    block_bytes: u64,
) -> Result<(), EngineError> {
    let direct = matrix.streams.iter().zip(configs);
    let mut direct = direct.filter(|(stream, _)| stream.direct != DirectIo::Off);
    let found = direct.find_map(|(stream, config)| {
        let sizes = config.all_sizes_bytes().into_iter().chain(matrix.axes.sizes_bytes.clone());
        // The last transfer of a pass over the data ends at the end of a file.
        let end = Some(config.files.file_size_bytes).filter(|_| stream.writes_layout());
        let offsets = [config.files.offset_bytes, config.align_bytes];
        let mut all = sizes.chain(offsets).chain(end);
        all.find(|bytes| block_bytes > 0 && !bytes.is_multiple_of(block_bytes))
    });
    match found {
        Some(bytes) => Err(EngineError::Config(format!(
            "{}: direct I/O requires multiples of the logical block of {block_bytes} bytes, but \
             the plan uses {bytes} bytes: change the transfer size, `align`, `offset` or \
             `file_size`, or set direct = \"off\"",
            path.display()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;
    use plimsoll_workload::planned::streams;

    use super::*;

    fn check(stream: &str, block_bytes: u64) -> Result<(), String> {
        let text = format!(
            "version = 1\nname = \"a\"\n[target]\npath = \"/x\"\n[workload.matrix]\n{stream}\n"
        );
        let plan = Plan::parse(&text, "a.toml").unwrap_or_else(|error| panic!("{error}")).resolve();
        let matrix = plan.workload.matrix().unwrap();
        let configs = streams::streams(matrix, 1, None).unwrap();
        check_transfers(matrix, &configs, Path::new("/x"), block_bytes)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_transfer_that_the_device_rejects_is_refused_before_anything_is_written() {
        for (stream, bytes) in [
            ("sizes = [\"512B\"]", 512),
            ("sizes = [\"6KiB\"]", 6144),
            ("sizes = [\"4KiB\"]\nalign = \"512B\"", 512),
            ("sizes = [\"4KiB\"]\noffset = \"512B\"", 512),
            ("sizes = [\"4KiB\"]\nfile_size = \"1049088B\"\nlayout = \"written\"", 1_049_088),
        ] {
            let error = check(stream, 4096).unwrap_err();
            assert!(error.contains("block of 4096 bytes"), "{error}");
            assert!(error.contains(&format!("uses {bytes} bytes")), "{error}");
            assert_eq!(check(stream, 512), Ok(()), "{stream}");
            assert_eq!(check(stream, 0), Ok(()), "an unknown alignment rejects nothing");
            assert_eq!(check(&format!("{stream}\ndirect = \"off\""), 4096), Ok(()), "{stream}");
        }
        assert_eq!(check("sizes = [\"8KiB\"]", 4096), Ok(()));
    }
}
