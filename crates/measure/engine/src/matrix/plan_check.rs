//! Checks whether a plan's streams can be driven on a kind of target, without touching the target.
//!
//! A dry run makes these checks; a run makes them before it reserves its target.

use std::fs;
use std::path::Path;

use plimsoll_plan::{Matrix, ResolvedPlan, Target, TargetKind};
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::StreamPart;
use plimsoll_workload::planned::pace::StreamPace;
use plimsoll_workload::planned::streams;

use crate::EngineError;
use crate::s3;
use crate::stream::matrix::check_content;

/// Checks names, transfer sizes, content, addresses and rates of all streams. The streams of a
/// block device are checked when it is open, because its size decides.
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
