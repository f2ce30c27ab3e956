//! Records the operations of a thread that drives a stateful workload.
//!
//! Sums are sent in every interval. In long runs, histograms are sent less often, because 3,600
//! histograms of each class for one hour would not be useful. The thread packs the histograms, so
//! it needs only one table.

use plimsoll_sys::cpu::{CpuTime, thread_time};

use crate::histogram::{HistogramTable, WaitKind};
use crate::snapshot::{IntervalRecorder, IntervalSnapshot};
use crate::totals::OperationTotals;

/// Recorder for one thread.
#[derive(Debug)]
pub struct Recorder {
    /// Records of the current interval.
    pub interval: IntervalRecorder,
    /// Processor time of the thread at the start of the interval.
    cpu: CpuTime,
    histogram_interval_ns: u64,
}

impl Recorder {
    /// Creates a recorder for a thread whose first interval begins at `start_ns`.
    pub fn new(thread: u32, classes: usize, start_ns: u64, histogram_interval_ns: u64) -> Self {
        let mut interval = IntervalRecorder::new(thread, classes, HistogramTable::new(classes));
        (interval.snapshot.start_ns, interval.snapshot.histogram_start_ns) = (start_ns, start_ns);
        Self { interval, cpu: thread_time(), histogram_interval_ns }
    }

    /// Returns the start of the current interval.
    pub fn start_ns(&self) -> u64 {
        self.interval.snapshot.start_ns
    }

    /// Returns the start of the current histograms.
    pub fn histogram_start_ns(&self) -> u64 {
        self.interval.snapshot.histogram_start_ns
    }

    /// Returns the records of the interval and starts the next interval. If `all` is true, the
    /// records include histograms even if these are not due.
    pub fn take(&mut self, phase: u32, end_ns: u64, all: bool) -> IntervalSnapshot {
        let IntervalRecorder { snapshot, histograms } = &mut self.interval;
        let classes = snapshot.totals.len();
        let mut next = IntervalSnapshot {
            thread: snapshot.thread,
            start_ns: end_ns,
            totals: vec![OperationTotals::default(); classes],
            histogram_start_ns: snapshot.histogram_start_ns,
            ..IntervalSnapshot::default()
        };
        if all || end_ns.saturating_sub(snapshot.histogram_start_ns) >= self.histogram_interval_ns {
            next.histogram_start_ns = end_ns;
            snapshot.own_times = Some(histograms.pack_waits(WaitKind::Own));
            snapshot.latencies = (0..classes).map(|class| histograms.pack(class)).collect();
        }
        let now = thread_time();
        snapshot.cpu = now.since(&std::mem::replace(&mut self.cpu, now));
        (snapshot.phase, snapshot.end_ns) = (phase, end_ns);
        std::mem::replace(snapshot, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::latency::Packed;

    #[test]
    fn sums_go_every_interval_and_histograms_when_due() {
        let mut recorder = Recorder::new(0, 1, 0, 100);
        recorder.interval.record(0, 4096, 7, 5);
        let first = recorder.take(1, 60, false);
        assert_eq!(first.totals[0].operations, 1);
        assert!(first.latencies.is_empty());
        recorder.interval.record(0, 4096, 9, 9);
        let second = recorder.take(1, 120, false);
        assert_eq!((second.start_ns, second.histogram_start_ns), (60, 0));
        let of = |values: &[u64]| Packed::from_buckets(values.iter().map(|value| (*value, 1)));
        assert_eq!(second.latencies[0].latency, of(&[7, 9]));
        assert_eq!(second.latencies[0].service, of(&[5, 9]));
        assert_eq!(second.totals[0].latency_ns_sum, 9);
        assert_eq!(recorder.take(1, 130, true).latencies[0].latency.count(), 0);
    }
}
