//! Records of I/Os that were in flight or due at the end of the measured phase ([`crate::drain`]).
//! They are few and finish after the measurement, so maps are sufficient.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::Packed;
use plimsoll_sys::cpu::CpuTime;

use crate::recorder::{ClassSums, Latencies, Snapshot, Waits};
use crate::tally;

/// Counts by the largest value of each bucket.
type Counts = BTreeMap<u64, u64>;

/// Recorder of late I/Os of one thread.
#[derive(Clone, Debug)]
pub struct LateRecorder {
    sums: Vec<ClassSums>,
    latency: Vec<Counts>,
    service: Vec<Counts>,
    phase: u32,
    end_ns: u64,
    histogram_start_ns: u64,
}

impl LateRecorder {
    /// Creates a recorder for the measured phase `phase`, which ended at `end_ns`. Latencies belong
    /// to the histograms that started at `histogram_start_ns`.
    #[must_use]
    pub fn new(classes: usize, phase: u32, end_ns: u64, histogram_start_ns: u64) -> Self {
        Self {
            sums: vec![ClassSums::default(); classes],
            latency: vec![Counts::new(); classes],
            service: vec![Counts::new(); classes],
            phase,
            end_ns,
            // The log of histograms has a resolution of milliseconds. A start at the phase's end
            // would be outside.
            histogram_start_ns: histogram_start_ns.min(end_ns.saturating_sub(1_000_000)),
        }
    }

    /// Returns the end of the measured phase. I/Os that were due earlier belong to the phase.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Records a completed I/O.
    pub fn record(&mut self, class: usize, bytes: u64, latency_ns: u64, service_ns: u64) {
        self.count(class, latency_ns, Some(service_ns));
        if let Some(sums) = self.sums.get_mut(class) {
            sums.count += 1;
            sums.size_bytes += bytes;
        }
    }

    /// Counts a failed I/O.
    pub fn record_error(&mut self, class: usize) {
        if let Some(sums) = self.sums.get_mut(class) {
            sums.errors += 1;
        }
    }

    /// Records an I/O that has not completed, with its waiting time.
    pub fn abandon(&mut self, class: usize, latency_ns: u64, service_ns: u64) {
        self.count(class, latency_ns, Some(service_ns));
        if let Some(sums) = self.sums.get_mut(class) {
            sums.abandoned += 1;
        }
    }

    /// Records an I/O that was due and never issued.
    pub fn leave(&mut self, class: usize, latency_ns: u64) {
        self.count(class, latency_ns, None);
        if let Some(sums) = self.sums.get_mut(class) {
            sums.never_started += 1;
        }
    }

    fn count(&mut self, class: usize, latency_ns: u64, service_ns: Option<u64>) {
        let Some(sums) = self.sums.get_mut(class) else { return };
        sums.latency_ns_sum = sums.latency_ns_sum.saturating_add(latency_ns);
        sums.latency_ns_max = sums.latency_ns_max.max(latency_ns);
        *self.latency[class].entry(tally::highest_in_bucket(latency_ns)).or_default() += 1;
        if let Some(service_ns) = service_ns {
            sums.service_ns_sum = sums.service_ns_sum.saturating_add(service_ns);
            sums.service_ns_max = sums.service_ns_max.max(service_ns);
            *self.service[class].entry(tally::highest_in_bucket(service_ns)).or_default() += 1;
        }
    }

    /// Returns everything recorded up to `now_ns`.
    #[must_use]
    pub fn into_snapshot(self, thread: u32, now_ns: u64) -> Snapshot {
        let packed = |counts: Counts| Packed::from_buckets(counts.into_iter().collect());
        let both = self.latency.into_iter().zip(self.service);
        Snapshot {
            thread,
            phase: self.phase,
            start_ns: self.end_ns,
            end_ns: now_ns.max(self.end_ns + 1),
            classes: self.sums,
            latencies: both
                .map(|(latency, service)| Latencies {
                    latency: packed(latency),
                    service: packed(service),
                })
                .collect(),
            histogram_start_ns: self.histogram_start_ns,
            waits: Waits::default(),
            cpu: CpuTime::default(),
            spun_ns: 0,
            counters: Vec::new(),
            progress_bytes: (0, 0),
            ready: true,
            drained: true,
        }
    }
}
