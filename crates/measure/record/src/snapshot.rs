//! Records of one thread in one interval. Streams and stateful workloads use the same format.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::Packed;
use plimsoll_sys::cpu::CpuTime;

use crate::histogram::{HistogramTable, Histograms, Latencies, WaitKind, packed_value_of};
use crate::totals::{OperationTotals, Waits};

/// A counter of the workload: its name, its instance, and its value since the start.
pub type Counter = (&'static str, u32, u64);

/// Sums and histograms of one thread in one interval.
#[derive(Clone, Debug, Default)]
pub struct IntervalSnapshot {
    /// Thread number.
    pub thread: u32,
    /// Number of the phase, for a stateful workload.
    pub phase: u32,
    /// Number of the interval, for streams; negative during the warm-up.
    pub interval: i64,
    /// Start of the interval on the driver's clock.
    pub start_ns: u64,
    /// End of the interval.
    pub end_ns: u64,
    /// Totals of each class. For streams, the index is `client × classes + class`.
    pub totals: Vec<OperationTotals>,
    /// Delays of operations for which a slot in the queue was free ([`WaitKind::Own`]).
    pub own: Waits,
    /// Waits of operations because the queue was full ([`WaitKind::Held`]).
    pub held: Waits,
    /// Processor time of the thread in the interval.
    pub cpu: CpuTime,
    /// Time in which the thread polled the clock, or polled for completions although no operation
    /// had completed.
    pub spun_ns: u64,
    /// True if the snapshot contains operations that were in flight or due at the end of the
    /// measured phase. They are included in the latencies of the phase, but not in its rates.
    pub drained: bool,
    /// True if this is the last interval of the thread.
    pub last: bool,
    /// Histograms of each class since `histogram_start_ns`. Empty if histograms are not due, or are
    /// not sent in packed form.
    pub latencies: Vec<Latencies>,
    /// Histogram of the waits in `own` since `histogram_start_ns`; present together with
    /// `latencies`.
    pub own_times: Option<Packed>,
    /// Start of the packed histograms.
    pub histogram_start_ns: u64,
    /// Counters of the workload at the end of the interval.
    pub counters: Vec<Counter>,
    /// Number of bytes already processed, and total number of bytes to process.
    pub progress_bytes: (u64, u64),
    /// True if the phase may end, for example because the store is warm.
    pub ready: bool,
}

/// Records the operations of one thread in one interval.
#[derive(Debug)]
pub struct IntervalRecorder<H = HistogramTable> {
    /// Sums.
    pub snapshot: IntervalSnapshot,
    /// Histograms.
    pub histograms: H,
}

impl<H: Histograms> IntervalRecorder<H> {
    /// Creates a recorder for `classes` classes. For streams, this is the number of classes times
    /// the number of clients.
    #[must_use]
    pub fn new(thread: u32, classes: usize, histograms: H) -> Self {
        let totals = vec![OperationTotals::default(); classes];
        let snapshot = IntervalSnapshot { thread, totals, ..IntervalSnapshot::default() };
        Self { snapshot, histograms }
    }

    /// Records a completed operation.
    #[inline(always)]
    pub fn record(&mut self, class: usize, bytes: u64, latency_ns: u64, service_ns: u64) {
        if let Some(totals) = self.count_times(class, latency_ns, Some(service_ns)) {
            totals.operations += 1;
            totals.bytes += bytes;
        }
    }

    /// Records an operation that has not completed. The times are those since its intended start
    /// and since its submission.
    pub fn abandon(&mut self, class: usize, latency_ns: u64, service_ns: u64) {
        if let Some(totals) = self.count_times(class, latency_ns, Some(service_ns)) {
            totals.abandoned += 1;
        }
    }

    /// Records an operation that was due and never started. `latency_ns` is the time that it has
    /// waited.
    pub fn never_start(&mut self, class: usize, latency_ns: u64) {
        if let Some(totals) = self.count_times(class, latency_ns, None) {
            totals.never_started += 1;
        }
    }

    /// Counts a failed operation.
    pub fn record_error(&mut self, class: usize) {
        if let Some(totals) = self.snapshot.totals.get_mut(class) {
            totals.errors += 1;
        }
    }

    #[inline(always)]
    fn count_times(
        &mut self,
        class: usize,
        latency_ns: u64,
        service_ns: Option<u64>,
    ) -> Option<&mut OperationTotals> {
        let totals = self.snapshot.totals.get_mut(class)?;
        totals.add_latency(latency_ns, latency_ns);
        if let Some(service_ns) = service_ns {
            totals.add_service(service_ns, service_ns);
        }
        self.histograms.count_times(class, latency_ns, service_ns);
        Some(totals)
    }
}

impl IntervalRecorder {
    /// Records the wait of an operation from the time at which it could start until its submission.
    #[inline(always)]
    pub fn record_wait(&mut self, kind: WaitKind, wait_ns: u64) {
        let waits = match kind {
            WaitKind::Own => &mut self.snapshot.own,
            WaitKind::Held => &mut self.snapshot.held,
        };
        waits.add(&Waits { count: 1, ns_sum: wait_ns, ns_max: wait_ns });
        self.histograms.count_wait(kind, wait_ns);
    }
}

/// Histograms of a few operations. For each class, they contain the number of latencies and of
/// service times with each value.
#[derive(Clone, Debug)]
pub struct FewHistograms(Vec<[BTreeMap<u64, u64>; 2]>);

impl Histograms for FewHistograms {
    fn count_times(&mut self, class: usize, latency_ns: u64, service_ns: Option<u64>) {
        let Some(class) = self.0.get_mut(class) else { return };
        for (counts, time_ns) in class.iter_mut().zip([Some(latency_ns), service_ns]) {
            if let Some(time_ns) = time_ns {
                *counts.entry(packed_value_of(time_ns)).or_default() += 1;
            }
        }
    }
}

/// Recorder of operations of one thread that were in flight or due at the end of the measured phase
/// ([`crate::drain`]). Only a few such operations exist, and they finish after the measurement, so
/// maps are fast enough.
pub type LateRecorder = IntervalRecorder<FewHistograms>;

impl LateRecorder {
    /// Creates a recorder for the measured phase `phase`, which ended at `end_ns`. The latencies
    /// are added to the histograms that started at `histogram_start_ns`.
    #[must_use]
    pub fn late(classes: usize, phase: u32, end_ns: u64, histogram_start_ns: u64) -> Self {
        let histograms = FewHistograms(vec![Default::default(); classes]);
        let mut late = Self::new(0, classes, histograms);
        (late.snapshot.phase, late.snapshot.start_ns) = (phase, end_ns);
        // A histogram that starts at the end of the phase would be outside the phase, because the
        // log has a resolution of milliseconds.
        let is_inside = histogram_start_ns < end_ns;
        late.snapshot.histogram_start_ns =
            if is_inside { histogram_start_ns } else { end_ns.saturating_sub(1_000_000) };
        late
    }

    /// Returns the end of the measured phase. Operations that were due earlier belong to the phase.
    #[must_use]
    pub fn phase_end_ns(&self) -> u64 {
        self.snapshot.start_ns
    }

    /// Returns all records up to `now_ns`.
    #[must_use]
    pub fn into_snapshot(self, thread: u32, now_ns: u64) -> IntervalSnapshot {
        let packed = |counts: BTreeMap<_, _>| Packed::from_buckets(counts);
        let latencies = self.histograms.0.into_iter().map(|[latency, service]| Latencies {
            latency: packed(latency),
            service: packed(service),
        });
        IntervalSnapshot {
            thread,
            end_ns: now_ns.max(self.snapshot.start_ns + 1),
            latencies: latencies.collect(),
            ready: true,
            drained: true,
            ..self.snapshot
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_operations_belong_to_the_phase_however_short_it_was() {
        let start_ns = |end_ns| {
            let late = LateRecorder::late(1, 1, end_ns, 5_000_000);
            late.into_snapshot(0, end_ns + 10).histogram_start_ns
        };
        assert_eq!(start_ns(5_883_000), 5_000_000, "interrupted after 0.9 ms");
        assert_eq!(start_ns(5_000_000), 4_000_000);
    }
}
