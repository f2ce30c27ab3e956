//! Records the time to the first byte of each read. The target must report when this byte arrives.

use plimsoll_record::snapshot::IntervalRecorder;

use super::{DriveConfig, InFlight, cell_of};
use crate::stream::source::FirstByteClass;

/// Records the time to the first byte of a completed read.
pub(super) fn record(
    first_byte: FirstByteClass,
    records: &mut IntervalRecorder,
    issued: &InFlight,
    at_ns: u64,
    scheduled: bool,
    config: &DriveConfig,
) {
    let cell = cell_of(issued.client, first_byte.class, config);
    let service_ns = at_ns.saturating_sub(issued.submitted_ns);
    let latency_ns = if scheduled { at_ns.saturating_sub(issued.intended_ns) } else { service_ns };
    // The class of the reads already contains these bytes.
    records.record(cell, 0, latency_ns, service_ns);
}
