//! Converts the streams of a plan to streams of the workload. A plan causes the same operations on
//! files, on devices, over NFS and on S3.

use plimsoll_plan as plan;

use super::PlannedError;
use crate::content::{ContentSpec, unit_bytes_for};
use crate::matrix::{FileSet, StreamConfig};

/// Number of small files that each client has when a stream with metadata operations starts.
const NAMES_PER_CLIENT: u32 = 64;

/// Multiplier of SplitMix64 (Steele, Lea and Flood, 2014). With it, each stream gets a different
/// seed.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Creates the streams of `matrix`. The file table contains the files of all streams, in the order
/// of the streams. A device is a single file, which all streams share. `device_bytes` is the size
/// of the device.
///
/// # Errors
/// Fails if a size is too large for a transfer, or if there are too many files for a file table.
pub fn streams(
    matrix: &plan::Matrix,
    seed: u64,
    device_bytes: Option<u64>,
) -> Result<Vec<StreamConfig>, PlannedError> {
    let mut first_file = 0u32;
    let mut streams = Vec::new();
    for (number, stream) in matrix.streams.iter().enumerate() {
        let config = config(stream, number as u64, seed, first_file, device_bytes)?;
        if device_bytes.is_none() {
            let after = u64::from(first_file) + config.files.files();
            first_file = u32::try_from(after)
                .map_err(|_| PlannedError::Numbers("the plan has more than 2^32 files".into()))?;
        }
        streams.push(config);
    }
    Ok(streams)
}

fn config(
    stream: &plan::Stream,
    number: u64,
    seed: u64,
    first_file: u32,
    device_bytes: Option<u64>,
) -> Result<StreamConfig, PlannedError> {
    let files = &stream.files;
    let (shares, files_per_share) =
        if device_bytes.is_some() { (1, 1) } else { (files.shares, files.files_per_share) };
    let file_size_bytes = match (device_bytes, files.file_size_bytes) {
        (Some(device), Some(size)) => size.min(device),
        (Some(device), None) => device,
        (None, size) => size.unwrap_or(0),
    };
    let all_sizes = stream.sizes.iter().chain(&stream.write_sizes).map(|size| size.size_bytes);
    if let Some(bytes) = all_sizes.clone().find(|bytes| *bytes > u64::from(u32::MAX)) {
        let name = &stream.name;
        let says = format!("stream {name}: a transfer of {bytes} bytes is too large");
        return Err(PlannedError::Numbers(says));
    }
    let file_size_bytes = whole_records(
        file_size_bytes,
        all_sizes.chain([files.offset_bytes, stream.align_bytes]).collect(),
    );
    Ok(StreamConfig {
        name: stream.name.clone(),
        seed: seed.wrapping_add(number.wrapping_mul(SEED_STEP)),
        clients: stream.clients,
        queue_depth: stream.queue_depth,
        files: FileSet {
            first_file,
            shares,
            files_per_share,
            file_size_bytes,
            offset_bytes: files.offset_bytes,
            working_set_bytes: files.working_set_bytes,
        },
        read_percent: stream.read_percent,
        sizes: stream.sizes.clone(),
        write_sizes: stream.write_sizes.clone(),
        pattern: stream.pattern,
        align_bytes: stream.align_bytes,
        sync: stream.sync,
        metadata_percent: stream.metadata_percent,
        metadata_mix: stream.metadata_mix,
        names_per_client: if stream.metadata_percent > 0.0 { NAMES_PER_CLIENT } else { 0 },
        first_byte: false,
        trace: None,
    })
}

/// If records do not consist of whole sectors, rounds the size of a file down to a multiple of the
/// record size. Otherwise, returns the size unchanged.
fn whole_records(file_size_bytes: u64, mut sizes_and_offsets: Vec<u64>) -> u64 {
    sizes_and_offsets.retain(|bytes| *bytes > 0);
    match unit_bytes_for(&sizes_and_offsets).map(u64::from) {
        Some(unit_bytes) if !unit_bytes.is_multiple_of(512) => {
            file_size_bytes / unit_bytes * unit_bytes
        }
        _ => file_size_bytes,
    }
}

/// Returns the specification of the content of a stream's files. `unit_bytes` is the unit size of
/// the whole data set, and `run` is the number of the run.
#[must_use]
pub fn content(
    stream: &plan::Stream,
    file_size_bytes: u64,
    unit_bytes: u32,
    run: u64,
) -> ContentSpec {
    ContentSpec {
        compressibility: stream.content.compressibility,
        duplicate_share: stream.content.duplicate_share,
        space_bytes: file_size_bytes,
        unit_bytes,
        run,
        stamps: stream.content.stamps,
    }
}

/// Returns the unit size for stamps and content. It is the largest unit size that divides every
/// alignment, every file size and every transfer size at every point of a sweep.
///
/// # Errors
/// Fails if no unit size is possible, because the sizes are neither whole sectors nor multiples of
/// one record size.
pub fn unit_bytes(matrix: &plan::Matrix, streams: &[StreamConfig]) -> Result<u32, PlannedError> {
    let mut numbers = matrix.axes.sizes_bytes.clone();
    for stream in streams {
        numbers.extend(stream.all_sizes_bytes());
        let files = &stream.files;
        numbers.extend([files.offset_bytes, files.file_size_bytes, stream.align_bytes]);
    }
    numbers.retain(|number| *number > 0);
    unit_bytes_for(&numbers).ok_or_else(|| {
        let says = "sizes, offsets, alignments and file sizes must be multiples of 512 bytes, or \
                    multiples of one record size of at least 512 bytes, such as 2300";
        PlannedError::Numbers(says.to_owned())
    })
}
