//! Position of an arm in its table.

use plimsoll_evidence::Bundle;
use serde::{Deserialize, Serialize};

/// Position of an arm in its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Size of the I/Os.
    pub size_bytes: u64,
    /// Share of reads among them, in percent.
    pub read_percent: f64,
    /// Share of metadata operations among all, in percent.
    pub metadata_percent: f64,
    /// Access pattern.
    pub pattern: String,
    /// Outstanding operations of each client.
    pub queue_depth: u32,
}

/// Returns the point of an arm whose plan has one stream of one size.
pub(super) fn point_of(bundle: &Bundle) -> Option<Point> {
    let [stream] = &bundle.plan.workload.matrix()?.streams[..] else { return None };
    let [size] = &stream.sizes[..] else { return None };
    Some(Point {
        size_bytes: size.size_bytes,
        read_percent: stream.read_percent,
        metadata_percent: stream.metadata_percent,
        pattern: stream.pattern.word().to_owned(),
        queue_depth: stream.queue_depth,
    })
}
