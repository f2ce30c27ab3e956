//! Computes the current rate and latency of a running load.

use plimsoll_record::collect::Interval;
use plimsoll_record::progress::Progress;
use plimsoll_workload::step::{Class, ClassGroup};

/// Rate and latency of the latest interval. The progress reports contain these values.
pub(super) struct ProgressMeter {
    rate_ops_per_s: f64,
    rate_bytes_per_s: f64,
    latency_ns_avg: Option<u64>,
    classes: usize,
}

impl ProgressMeter {
    pub(super) fn new(classes: usize) -> Self {
        Self { rate_ops_per_s: 0.0, rate_bytes_per_s: 0.0, latency_ns_avg: None, classes }
    }

    pub(super) fn take(&mut self, row: &Interval, interval_ns: u64) {
        if row.supplement {
            return;
        }
        let (mut count, mut bytes, mut latency_ns) = (0, 0, 0);
        for class in row.classes.iter().take(self.classes) {
            count += class.totals.operations;
            bytes += class.totals.bytes;
            latency_ns += class.totals.latency_ns_sum;
        }
        let seconds = interval_ns as f64 / 1e9;
        (self.rate_ops_per_s, self.rate_bytes_per_s) =
            (count as f64 / seconds, bytes as f64 / seconds);
        self.latency_ns_avg = (count > 0).then(|| latency_ns / count);
    }

    pub(super) fn progress(&self, elapsed_ns: u64, total_ns: u64) -> Progress {
        Progress {
            elapsed_ns,
            done_bytes: 0,
            total_bytes: 0,
            total_ns,
            rate_ops_per_s: self.rate_ops_per_s,
            rate_bytes_per_s: self.rate_bytes_per_s,
            latency_ns_avg: self.latency_ns_avg,
        }
    }
}

/// Returns the number of operations and the number of written bytes in a complete interval of the
/// phase. Returns `None` if the interval is before the start or after the stop of the phase. Also
/// returns `None` if the record only adds operations to an earlier interval.
pub(super) fn interval_totals(row: &Interval, classes: &[Class]) -> Option<(u64, u64)> {
    if row.number < 0 || row.drain || row.supplement {
        return None;
    }
    let (mut operations, mut written_bytes) = (0, 0);
    for (class, totals) in classes.iter().zip(&row.classes) {
        let counted = [ClassGroup::Sync, ClassGroup::Durable, ClassGroup::FirstByte];
        if counted.contains(&class.group) {
            continue;
        }
        operations += totals.totals.operations;
        if !class.is_read && class.group != ClassGroup::Metadata {
            written_bytes += totals.totals.bytes;
        }
    }
    Some((operations, written_bytes))
}
