//! Figures about the load generator, for all drivers.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_evidence::latency::{self, Interval};
use plimsoll_evidence::observed::{GeneratorThread, Lag};
use plimsoll_sys::cpu::CpuTime;

use crate::recorder::Waits;

/// Tag of the histogram of delays in the generator.
pub const LAG_TAG: &str = "generator.lag";
/// Tag of the histogram of waits for a free slot in the queue.
pub const HELD_TAG: &str = "generator.held";

/// Adds a lag to the counters of a run.
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

/// Figures of the threads of a stateful workload in the measured phase: delays of I/Os, and
/// resources used.
#[derive(Clone, Debug, Default)]
pub struct GeneratorFigures {
    sums: Waits,
    times: Option<Histogram<u64>>,
    used: BTreeMap<u32, GeneratorThread>,
}

impl GeneratorFigures {
    /// Adds a thread's interval. Its histogram, if any, is appended to `intervals`.
    pub fn take(
        &mut self,
        thread: u32,
        (waits, cpu, spun_ns): (&Waits, CpuTime, u64),
        (start_ns, duration_ns): (u64, u64),
        intervals: &mut Vec<Interval>,
    ) {
        self.sums.count += waits.count;
        self.sums.ns_sum = self.sums.ns_sum.saturating_add(waits.ns_sum);
        self.sums.ns_max = self.sums.ns_max.max(waits.ns_max);
        let used = self.used.entry(thread).or_default();
        used.user_ns += cpu.user_ns;
        used.system_ns += cpu.system_ns;
        used.spun_ns = Some(used.spun_ns.unwrap_or(0) + spun_ns);
        if !waits.times.is_empty() {
            let times = self.times.get_or_insert_with(latency::histogram);
            // Both histograms have the same range, so this call cannot fail.
            let _ = times.add(waits.times.unpack());
            let (tag, histogram) = (LAG_TAG.to_owned(), waits.times.clone());
            intervals.push(Interval { tag, start_ns, duration_ns, histogram });
        }
    }

    /// Returns the lag over the whole phase; `None` if no I/O was issued.
    pub fn lag(&self) -> Option<Lag> {
        let times = self.times.as_ref().filter(|times| !times.is_empty())?;
        Some(Lag {
            operations: self.sums.count,
            wait_ns_sum: self.sums.ns_sum,
            wait_ns_p50: times.value_at_quantile(0.5),
            wait_ns_p99: times.value_at_quantile(0.99),
            wait_ns_max: self.sums.ns_max,
        })
    }

    /// Returns the threads with their resource use.
    pub fn threads(&self, threads: Vec<GeneratorThread>) -> Vec<GeneratorThread> {
        let used = |number: u32| self.used.get(&number).cloned().unwrap_or_default();
        let with = |(number, thread): (u32, GeneratorThread)| {
            let GeneratorThread { user_ns, system_ns, spun_ns, .. } = used(number);
            GeneratorThread { user_ns, system_ns, spun_ns: spun_ns.or(thread.spun_ns), ..thread }
        };
        (0..).zip(threads).map(with).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::latency::Packed;

    #[test]
    fn what_threads_say_adds_up() {
        let mut measured = GeneratorFigures::default();
        assert_eq!(measured.lag(), None);
        let mut intervals = Vec::new();
        let cpu = CpuTime { user_ns: 3, system_ns: 5 };
        let waits = |ns: u64, times: Vec<(u64, u64)>| Waits {
            count: 2,
            ns_sum: 2 * ns,
            ns_max: ns,
            times: Packed::from_buckets(times),
        };
        measured.take(1, (&waits(10, Vec::new()), cpu, 4), (0, 5), &mut intervals);
        measured.take(1, (&waits(20, vec![(10, 2), (20, 2)]), cpu, 4), (0, 10), &mut intervals);
        measured.take(0, (&waits(30, vec![(30, 2)]), cpu, 0), (0, 10), &mut intervals);
        let lag = measured.lag().unwrap();
        assert_eq!((lag.operations, lag.wait_ns_sum, lag.wait_ns_max), (6, 120, 30));
        assert_eq!((lag.wait_ns_p50, lag.wait_ns_p99), (20, 30));
        assert_eq!(intervals.iter().filter(|i| i.tag == LAG_TAG).count(), 2);
        let threads = measured.threads(vec![GeneratorThread::default(); 2]);
        assert_eq!((threads[0].user_ns, threads[1].system_ns), (3, 10));
        assert_eq!((threads[0].spun_ns, threads[1].spun_ns), (Some(0), Some(8)));
    }
}
