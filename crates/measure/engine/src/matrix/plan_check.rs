//! Checks whether targets of a given kind support the streams of a plan. The check does not access
//! the target.
//!
//! A dry run performs these checks. A run also performs them, before it locks its target.

use std::fs;
use std::path::Path;

use plimsoll_plan::{IoChoice, Matrix, ResolvedPlan, Target, TargetKind};
use plimsoll_sys::arena::{AlignedBuffer, PAGE_BYTES};
use plimsoll_sys::pool;
use plimsoll_sys::ring::{self, Ring, RingConfig};
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::StreamPart;
use plimsoll_workload::planned::pace::StreamPace;
use plimsoll_workload::planned::streams;

use crate::EngineError;
use crate::s3;
use crate::stream::matrix::check_content;

/// Checks the names, transfer sizes, content, addresses and rates of all streams. The streams of a
/// block device are checked after the device was opened, because their validity depends on the size
/// of the device.
///
/// # Errors
/// [`EngineError::Config`] if the streams cannot be driven. The error states the reason.
pub fn check_plan(
    plan: &ResolvedPlan,
    target: &Target,
    matrix: &Matrix,
) -> Result<(), EngineError> {
    check_names(target, matrix)?;
    check_depth(plan, target, matrix)?;
    if matches!(target.kind, TargetKind::Device { .. }) {
        return Ok(());
    }
    let configs = streams::streams(matrix, plan.seed, None)?;
    if matches!(target.kind, TargetKind::S3 { .. }) {
        s3::check_streams(&configs).map_err(EngineError::Config)?;
    }
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

/// Rejects a stream if its threads would have more operations in flight than their queues support.
///
/// # Errors
/// [`EngineError::Config`] if the queues are too small. The error states the supported number.
pub fn check_depth(
    plan: &ResolvedPlan,
    target: &Target,
    matrix: &Matrix,
) -> Result<(), EngineError> {
    use TargetKind::{Device, Directories, Path};
    if !matches!(target.kind, Path { .. } | Directories { .. } | Device { .. }) {
        return Ok(());
    }
    let threads = match plan.engine.workers {
        0 => plimsoll_sys::cpu::allowed().map_or(1, |cpus| cpus.len() as u32),
        requested => requested,
    };
    for stream in matrix.streams.iter().filter(|stream| !stream.arrival.is_open()) {
        let of = threads.min(stream.clients).max(1);
        let depth = u64::from(stream.queue_depth.max(1)) * u64::from(stream.clients.div_ceil(of));
        if depth <= u64::from(pool::DEPTH_MAX) {
            continue;
        }
        let ring_max = match plan.engine.io {
            IoChoice::Threads => None,
            _ if stream.metadata_percent > 0.0 => None,
            IoChoice::IoUring => Some(ring::ENTRIES_MAX),
            IoChoice::Auto => has_ring().then_some(ring::ENTRIES_MAX),
        };
        let (kind, most) =
            ring_max.map_or(("thread engine", pool::DEPTH_MAX), |most| ("io_uring", most));
        if depth > u64::from(most) {
            let name = &stream.name;
            return Err(EngineError::Config(format!(
                "stream {name} has {depth} operations in flight in one thread, but with {kind} a \
                 thread supports {most}: use a smaller queue depth or fewer clients"
            )));
        }
    }
    Ok(())
}

/// Returns true if this process can create an io_uring ring.
fn has_ring() -> bool {
    let arena = AlignedBuffer::new(PAGE_BYTES);
    arena.is_ok_and(|arena| Ring::new(RingConfig::new(1, Vec::new(), arena)).is_ok())
}

/// Rejects metadata operations on a target that has no file names.
pub(super) fn check_names(target: &Target, matrix: &Matrix) -> Result<(), EngineError> {
    use TargetKind::{Directories, Nfs, Path, S3};
    if matches!(target.kind, Path { .. } | Directories { .. } | Nfs { .. } | S3 { .. }) {
        return Ok(());
    }
    let Some(stream) = matrix.streams.iter().find(|stream| stream.metadata_percent > 0.0) else {
        return Ok(());
    };
    let says = format!(
        "stream {}: metadata operations need directories, NFS exports or a bucket; a target of kind \
         {} has no file names",
        stream.name,
        target.kind_word()
    );
    Err(EngineError::Config(says))
}
