//! Converts a trace to operations of a stream in a plan.

use std::sync::Arc;

use plimsoll_plan as plan;

use super::PlannedError;
use crate::matrix::StreamConfig;
use crate::trace::{Replay, Trace};

/// Maps a trace to the data file of the stream that replays it. `measure_ns` is the length of the
/// measured phase.
///
/// # Errors
/// Fails if the stream has no trace, or if no operation of the trace fits in the file.
pub fn lay(
    configs: &mut [StreamConfig],
    matrix: &plan::Matrix,
    trace: Trace,
    measure_ns: u64,
) -> Result<(), PlannedError> {
    let mut streams = configs.iter_mut().zip(&matrix.streams);
    let found = streams.find_map(|(config, stream)| Some((config, stream.trace.as_ref()?)));
    let Some((config, source)) = found else {
        return Err(PlannedError::Numbers("the plan has no stream that replays a trace".into()));
    };
    let files = &config.files;
    let target_bytes = files.file_size_bytes.saturating_sub(files.offset_bytes);
    let replay = Replay::new(trace, source, target_bytes, config.align_bytes, measure_ns)
        .map_err(PlannedError::numbers)?;
    let largest = replay.size_bytes_max();
    if config.all_sizes_bytes().last().is_none_or(|planned| *planned < u64::from(largest)) {
        // An operation can become larger than in the trace, because its offset and size are rounded
        // to the alignment.
        config
            .sizes
            .push(plan::SizeShare { size_bytes: largest.into(), share_percent: f64::MIN_POSITIVE });
    }
    config.trace = Some(Arc::new(replay));
    Ok(())
}
