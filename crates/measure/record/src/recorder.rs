//! Records of one thread of a stateful workload: sums and histograms per class, sent once per
//! interval.
//!
//! Sums are sent every interval. Histograms are sent less often in long runs: for one hour, 3,600
//! histograms per class would be useless.

use plimsoll_evidence::latency::Packed;
use plimsoll_sys::cpu::{CpuTime, thread_time};

use crate::tally::{Counts, Tallies};

/// Sums of one class over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSums {
    /// I/Os completed.
    pub count: u64,
    /// Bytes transferred.
    pub size_bytes: u64,
    /// Sum of latencies from the intended start.
    pub latency_ns_sum: u64,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// Sum of service times from just before submission.
    pub service_ns_sum: u64,
    /// Largest service time.
    pub service_ns_max: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// I/Os that had not completed when the thread ended. Their waiting times until then are in the
    /// sums and maxima, as lower bounds.
    pub abandoned: u64,
    /// Operations that were due in the measured phase and never issued. Their waits are in the
    /// latencies.
    pub never_started: u64,
}

impl ClassSums {
    /// Returns the number of I/Os in the latencies: completed, abandoned and never started.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.count + self.abandoned + self.never_started
    }

    /// Adds sums of another interval or thread.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.size_bytes += other.size_bytes;
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(other.latency_ns_sum);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
        self.service_ns_sum = self.service_ns_sum.saturating_add(other.service_ns_sum);
        self.service_ns_max = self.service_ns_max.max(other.service_ns_max);
        self.errors += other.errors;
        self.abandoned += other.abandoned;
        self.never_started += other.never_started;
    }
}

/// Latency and service time of one class.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Times from the intended start to the completion.
    pub latency: Packed,
    /// Times from just before the submission to the completion.
    pub service: Packed,
}

/// Delays of I/Os in the thread, from when each could have been submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Number of I/Os.
    pub count: u64,
    /// Sum of waits.
    pub ns_sum: u64,
    /// Longest wait.
    pub ns_max: u64,
    /// Histogram since the snapshot's `histogram_start_ns`; empty until it is sent.
    pub times: Packed,
}

impl Default for Waits {
    fn default() -> Self {
        Self { count: 0, ns_sum: 0, ns_max: 0, times: Packed::from_buckets(Vec::new()) }
    }
}

/// A counter of the workload: name, instance, value since the start.
pub type Counter = (&'static str, u32, u64);

/// Records of one thread over one interval.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Thread number.
    pub thread: u32,
    /// Phase number.
    pub phase: u32,
    /// Start of the interval on the driver's clock.
    pub start_ns: u64,
    /// End of the interval.
    pub end_ns: u64,
    /// Sums by class.
    pub classes: Vec<ClassSums>,
    /// Histograms by class since `histogram_start_ns`; empty until they are sent.
    pub latencies: Vec<Latencies>,
    /// Start of the histograms' interval.
    pub histogram_start_ns: u64,
    /// Time that I/Os waited in the load generator's thread.
    pub waits: Waits,
    /// Processor time of the thread in the interval.
    pub cpu: CpuTime,
    /// Time that the thread polled without a completion.
    pub spun_ns: u64,
    /// Counters of the workload at the end of the interval.
    pub counters: Vec<Counter>,
    /// Bytes done, and bytes to do.
    pub progress_bytes: (u64, u64),
    /// True if the phase may end, for example because the store is warm.
    pub ready: bool,
    /// Contains I/Os that were in flight or due at the end of the phase. They count in the phase's
    /// latencies, not in its rates. There is one snapshot of this kind, at the thread's end.
    pub drained: bool,
}

/// Records for one thread.
#[derive(Debug)]
pub struct Recorder {
    sums: Vec<ClassSums>,
    /// Three tallies per class. The first counts I/Os whose latency equals their service time,
    /// which is the usual case if nothing waits before submission. The others count latency and
    /// service time of all other I/Os. Most I/Os are therefore counted once. Another tally counts
    /// waits in the thread.
    tallies: Tallies,
    waits: Waits,
    cpu: CpuTime,
    start_ns: u64,
    histogram_start_ns: u64,
    histogram_interval_ns: u64,
}

impl Recorder {
    /// Creates a recorder for a thread whose first interval begins at `start_ns`.
    pub fn new(classes: usize, start_ns: u64, histogram_interval_ns: u64) -> Self {
        Self {
            sums: vec![ClassSums::default(); classes],
            tallies: Tallies::new(3 * classes + 1),
            waits: Waits::default(),
            cpu: thread_time(),
            start_ns,
            histogram_start_ns: start_ns,
            histogram_interval_ns,
        }
    }

    /// Returns the start of the current interval.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns the start of the current histograms.
    pub fn histogram_start_ns(&self) -> u64 {
        self.histogram_start_ns
    }

    /// Records a completed I/O.
    pub fn record(&mut self, class: usize, bytes: u64, latency_ns: u64, service_ns: u64) {
        let Some(sums) = self.sums.get_mut(class) else { return };
        sums.count += 1;
        sums.size_bytes += bytes;
        sums.latency_ns_sum = sums.latency_ns_sum.saturating_add(latency_ns);
        sums.latency_ns_max = sums.latency_ns_max.max(latency_ns);
        sums.service_ns_sum = sums.service_ns_sum.saturating_add(service_ns);
        sums.service_ns_max = sums.service_ns_max.max(service_ns);
        if latency_ns == service_ns {
            self.tallies.count(3 * class, latency_ns);
        } else {
            self.tallies.count(3 * class + 1, latency_ns);
            self.tallies.count(3 * class + 2, service_ns);
        }
    }

    /// Records the delay of an I/O in the thread.
    pub fn record_wait(&mut self, wait_ns: u64) {
        self.waits.count += 1;
        self.waits.ns_sum = self.waits.ns_sum.saturating_add(wait_ns);
        self.waits.ns_max = self.waits.ns_max.max(wait_ns);
        self.tallies.count(3 * self.sums.len(), wait_ns);
    }

    /// Counts a failed I/O.
    pub fn record_error(&mut self, class: usize) {
        if let Some(sums) = self.sums.get_mut(class) {
            sums.errors += 1;
        }
    }

    /// Returns the records and starts the next interval. With `all`, includes histograms.
    pub fn take(&mut self, thread: u32, phase: u32, end_ns: u64, all: bool) -> Snapshot {
        let due = end_ns.saturating_sub(self.histogram_start_ns) >= self.histogram_interval_ns;
        let histogram_start_ns = self.histogram_start_ns;
        let mut waits = std::mem::take(&mut self.waits);
        if all || due {
            waits.times = self.tallies.take(3 * self.sums.len()).with(&Counts::default());
        }
        let now = thread_time();
        let cpu = now.since(&std::mem::replace(&mut self.cpu, now));
        let latencies = if all || due {
            self.histogram_start_ns = end_ns;
            let tallies = &mut self.tallies;
            let mut take = |class| {
                let alike = tallies.take(3 * class);
                Latencies {
                    latency: alike.with(&tallies.take(3 * class + 1)),
                    service: alike.with(&tallies.take(3 * class + 2)),
                }
            };
            (0..self.sums.len()).map(&mut take).collect()
        } else {
            Vec::new()
        };
        let fresh = vec![ClassSums::default(); self.sums.len()];
        let snapshot = Snapshot {
            thread,
            phase,
            start_ns: self.start_ns,
            end_ns,
            classes: std::mem::replace(&mut self.sums, fresh),
            latencies,
            histogram_start_ns,
            waits,
            cpu,
            spun_ns: 0,
            counters: Vec::new(),
            progress_bytes: (0, 0),
            ready: false,
            drained: false,
        };
        self.start_ns = end_ns;
        snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_every_interval_and_histograms_when_due() {
        let mut recorder = Recorder::new(1, 0, 100);
        recorder.record(0, 4096, 7, 5);
        let first = recorder.take(0, 1, 60, false);
        assert_eq!(first.classes[0].count, 1);
        assert!(first.latencies.is_empty());
        recorder.record(0, 4096, 9, 9);
        let second = recorder.take(0, 1, 120, false);
        assert_eq!((second.start_ns, second.histogram_start_ns), (60, 0));
        let of =
            |values: &[u64]| Packed::from_buckets(values.iter().map(|value| (*value, 1)).collect());
        assert_eq!(second.latencies[0].latency, of(&[7, 9]));
        assert_eq!(second.latencies[0].service, of(&[5, 9]));
        assert_eq!(second.classes[0].latency_ns_sum, 9);
        assert_eq!(recorder.take(0, 1, 130, true).latencies[0].latency.count(), 0);
    }
}
