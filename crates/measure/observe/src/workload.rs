//! Adds rows to the series that describe the access profile of the running load: its working set so
//! far, and the share of random operations among its recent operations.

use plimsoll_evidence::series::{Data, Row};

use crate::access_profile::{AccessCounts, LiveAccess};

/// Sampling interval. A sample reads the bitmaps of all driving threads. The bitmaps of a thread
/// have at most 512 KiB.
const EVERY_NS: u64 = 1_000_000_000;

/// Samples the profilers of a load's threads.
#[derive(Debug, Default)]
pub struct WorkloadWatch {
    threads: Vec<LiveAccess>,
    before: AccessCounts,
    looked_ns: u64,
}

impl WorkloadWatch {
    /// Sets the profilers to sample.
    #[must_use]
    pub fn of(threads: Vec<LiveAccess>, now_ns: u64) -> Self {
        Self { threads, before: AccessCounts::default(), looked_ns: now_ns }
    }

    /// Marks the start of the measured phase. At this time, the threads reset their counts.
    pub fn begin(&mut self, now_ns: u64) {
        (self.before, self.looked_ns) = (AccessCounts::default(), now_ns);
    }

    /// Appends rows if the sampling interval has passed.
    pub fn sample(&mut self, now_ns: u64, phase: u32, rows: &mut Vec<Row>) {
        let (start_ns, duration_ns) = (self.looked_ns, now_ns.saturating_sub(self.looked_ns));
        // A sample may be taken slightly before the interval has passed.
        if duration_ns < EVERY_NS / 10 * 9 {
            return;
        }
        let Some(now) = LiveAccess::now(&self.threads) else { return };
        let sides = [
            ("read", now.working_set_read_bytes, now.reads, self.before.reads),
            ("written", now.working_set_written_bytes, now.writes, self.before.writes),
        ];
        for (side, bytes, operations, before) in sides {
            let share = operations.random_share_since(before);
            let values = [
                ("working_set_bytes", (bytes > 0).then_some(bytes as f64)),
                ("random_share", share),
            ];
            for (what, value) in values {
                let Some(value) = value else { continue };
                let (name, data) = (format!("workload.{side}.{what}"), Data::Gauge(value));
                rows.push(Row { phase, start_ns, duration_ns, name, data });
            }
        }
        (self.before, self.looked_ns) = (now, now_ns);
    }
}
