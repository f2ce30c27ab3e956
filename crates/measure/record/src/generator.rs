//! Figures about the load generator, used by all drivers.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::{Interval, Packed};
use plimsoll_evidence::observed::{GeneratorThread, Lag};

use crate::histogram::HistogramTotals;
use crate::snapshot::IntervalSnapshot;
use crate::totals::Waits;

/// Tag of the histogram of delays in the generator.
pub const LAG_TAG: &str = "generator.lag";
/// Tag of the histogram of waits for a free slot in the queue.
pub const HELD_TAG: &str = "generator.held";

/// Adds the statistics of a lag to the counters of a run.
pub fn count(counters: &mut BTreeMap<String, u64>, name: &str, lag: &Lag) {
    for (what, value) in [
        ("operations", lag.operations),
        ("ns_p50", lag.wait_ns_p50),
        ("ns_p99", lag.wait_ns_p99),
        ("ns_max", lag.wait_ns_max),
    ] {
        counters.insert(format!("{name}_{what}"), value);
    }
}

/// Waits of operations over a period, and the histogram of these waits.
#[derive(Clone, Debug, Default)]
pub struct WaitTotals {
    /// Exact sums.
    pub waits: Waits,
    /// Histogram.
    pub times: HistogramTotals,
}

impl WaitTotals {
    /// Adds the sums of other waits, but not their histogram.
    pub fn add(&mut self, waits: &Waits) {
        self.waits.add(waits);
        self.times.note_max(waits.ns_max);
    }

    /// Adds the waits of other threads, with their histogram.
    pub fn merge(&mut self, other: &Self) {
        self.waits.add(&other.waits);
        self.times.merge(&other.times);
    }

    /// Returns the lag; `None` if there is no histogram of waits.
    #[must_use]
    pub fn lag(&self) -> Option<Lag> {
        Some(Lag {
            operations: self.waits.count,
            wait_ns_sum: self.waits.ns_sum,
            wait_ns_p50: self.times.quantile_ns(0.5)?,
            wait_ns_p99: self.times.quantile_ns(0.99)?,
            wait_ns_max: self.waits.ns_max,
        })
    }

    /// Returns the histogram as the interval of a phase that began at `start_ns`.
    #[must_use]
    pub fn interval(&self, tag: &str, start_ns: u64, duration_ns: u64) -> Interval {
        let histogram = Packed::from(&self.times.to_hdr());
        Interval { tag: tag.to_owned(), start_ns, duration_ns, histogram }
    }
}

/// Delays of I/Os in the threads of a stateful workload, and the resources that these threads used,
/// in the measured phase.
#[derive(Clone, Debug, Default)]
pub struct GeneratorFigures {
    waits: WaitTotals,
    used: BTreeMap<u32, GeneratorThread>,
}

impl GeneratorFigures {
    /// Adds a thread's interval. If the interval has a histogram, it is appended to `intervals`,
    /// with the start time `start_ns` since the start of the run.
    pub fn take(
        &mut self,
        snapshot: &IntervalSnapshot,
        start_ns: u64,
        intervals: &mut Vec<Interval>,
    ) {
        self.waits.add(&snapshot.own);
        let used = self.used.entry(snapshot.thread).or_default();
        used.user_ns += snapshot.cpu.user_ns;
        used.system_ns += snapshot.cpu.system_ns;
        if let Some(wait_ns) = snapshot.cpu.wait_ns {
            used.cpu_wait_ns = Some(used.cpu_wait_ns.unwrap_or(0) + wait_ns);
        }
        used.spun_ns = Some(used.spun_ns.unwrap_or(0) + snapshot.spun_ns);
        if let Some(times) = snapshot.own_times.as_ref().filter(|times| !times.is_empty()) {
            self.waits.times.add_packed(times);
            let duration_ns = snapshot.end_ns.saturating_sub(snapshot.histogram_start_ns);
            let (tag, histogram) = (LAG_TAG.to_owned(), times.clone());
            intervals.push(Interval { tag, start_ns, duration_ns, histogram });
        }
    }

    /// Returns the lag over the whole phase; `None` if no I/O was issued.
    pub fn lag(&self) -> Option<Lag> {
        self.waits.lag()
    }

    /// Returns the figures about the threads, including the resources that they used.
    pub fn threads(&self, threads: Vec<GeneratorThread>) -> Vec<GeneratorThread> {
        let used = |number: u32| self.used.get(&number).cloned().unwrap_or_default();
        let with = |(number, thread): (u32, GeneratorThread)| {
            let GeneratorThread { user_ns, system_ns, spun_ns, cpu_wait_ns, .. } = used(number);
            let spun_ns = spun_ns.or(thread.spun_ns);
            GeneratorThread { user_ns, system_ns, spun_ns, cpu_wait_ns, ..thread }
        };
        (0..).zip(threads).map(with).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sys::cpu::CpuTime;

    #[test]
    fn what_threads_say_adds_up() {
        let mut measured = GeneratorFigures::default();
        assert_eq!(measured.lag(), None);
        let mut intervals = Vec::new();
        for (thread, wait_ns, times, spun_ns) in [
            (1, 10, None, 4),
            (1, 20, Some(vec![(10, 2), (20, 2)]), 4),
            (0, 30, Some(vec![(30, 2)]), 0),
        ] {
            let snapshot = IntervalSnapshot {
                thread,
                own: Waits { count: 2, ns_sum: 2 * wait_ns, ns_max: wait_ns },
                own_times: times.map(Packed::from_buckets),
                cpu: CpuTime { user_ns: 3, system_ns: 5, wait_ns: Some(7) },
                spun_ns,
                ..IntervalSnapshot::default()
            };
            measured.take(&snapshot, 0, &mut intervals);
        }
        let lag = measured.lag().unwrap();
        assert_eq!((lag.operations, lag.wait_ns_sum, lag.wait_ns_max), (6, 120, 30));
        assert_eq!((lag.wait_ns_p50, lag.wait_ns_p99), (20, 30));
        assert_eq!(intervals.iter().filter(|i| i.tag == LAG_TAG).count(), 2);
        let threads = measured.threads(vec![GeneratorThread::default(); 2]);
        assert_eq!((threads[0].user_ns, threads[1].system_ns), (3, 10));
        assert_eq!((threads[0].spun_ns, threads[1].spun_ns), (Some(0), Some(8)));
        assert_eq!(threads[1].cpu_wait_ns, Some(14));
    }
}
