//! Reads the storage I/O of kernel threads from `/proc/PID/io`. Loop devices, file systems and
//! in-kernel servers use these threads to submit I/O for other processes. Reading the counters
//! requires root.
//!
//! A worker exits after five idle minutes (kernel/workqueue.c, `IDLE_WORKER_TIMEOUT`), and its
//! counters are lost. If the counters are read more often than that, no I/O is lost.

use std::collections::BTreeMap;
use std::fs;

use plimsoll_evidence::observed::IoBytes;
use procfs::process::Process;

/// Interval between two readings of the counters.
const EVERY_NS: u64 = 30_000_000_000;
/// Process id of the parent of all kernel threads.
const KTHREADD: i32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadCounters {
    /// Start time of the thread, in ticks since boot. It distinguishes threads with the same id,
    /// because ids are reused.
    started: u64,
    moved: IoBytes,
}

/// Observer of the kernel threads during a phase.
#[derive(Clone, Debug, Default)]
pub struct KernelWatch {
    last: BTreeMap<i32, ThreadCounters>,
    total: IoBytes,
    /// True if the counters of all threads could be read.
    readable: bool,
    read_at_ns: u64,
}

impl KernelWatch {
    /// Starts counting.
    #[must_use]
    pub fn begin(now_ns: u64) -> Self {
        let last = read();
        Self {
            readable: last.is_some(),
            last: last.unwrap_or_default(),
            total: IoBytes::default(),
            read_at_ns: now_ns,
        }
    }

    /// Reads the counters if at least the interval has passed since the last reading.
    pub fn sample(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_at_ns) >= EVERY_NS {
            self.read_at_ns = now_ns;
            self.take();
        }
    }

    /// Returns the I/O since the start of the phase; `None` if the counters are not readable.
    pub fn end(&mut self) -> Option<IoBytes> {
        self.take();
        self.readable.then_some(self.total)
    }

    fn take(&mut self) {
        if !self.readable {
            return;
        }
        match read() {
            Some(now) => {
                self.total = self.total.plus(rise(&self.last, &now));
                self.last = now;
            }
            None => self.readable = false,
        }
    }
}

/// Returns the I/O between two readings. For a thread that is new in the second reading, all of its
/// I/O counts.
fn rise(before: &BTreeMap<i32, ThreadCounters>, now: &BTreeMap<i32, ThreadCounters>) -> IoBytes {
    now.iter().fold(IoBytes::default(), |sum, (pid, now)| {
        let then = before.get(pid).filter(|then| then.started == now.started);
        sum.plus(now.moved.minus(then.map_or(IoBytes::default(), |then| then.moved)))
    })
}

fn read() -> Option<BTreeMap<i32, ThreadCounters>> {
    let children = fs::read_to_string(format!("/proc/{KTHREADD}/task/{KTHREADD}/children")).ok()?;
    let mut counted = BTreeMap::new();
    for pid in children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()) {
        // Skips a thread that has exited.
        let Ok(process) = Process::new(pid) else { continue };
        let Ok(stat) = process.stat() else { continue };
        match process.io() {
            Ok(io) => {
                let moved = IoBytes { read_bytes: io.read_bytes, written_bytes: io.write_bytes };
                counted.insert(pid, ThreadCounters { started: stat.starttime, moved });
            }
            Err(procfs::ProcError::PermissionDenied(_)) => return None,
            Err(_) => {}
        }
    }
    (!counted.is_empty()).then_some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(threads: &[(i32, u64, u64)]) -> BTreeMap<i32, ThreadCounters> {
        let counted = |started, read_bytes| ThreadCounters {
            started,
            moved: IoBytes { read_bytes, written_bytes: 1 },
        };
        threads.iter().map(|(pid, started, read)| (*pid, counted(*started, *read))).collect()
    }

    #[test]
    fn adds_the_io_of_threads_that_come_and_go() {
        let before = reading(&[(7, 1, 900), (8, 1, 50)]);
        let now = reading(&[(7, 1, 950), (9, 3, 30)]);
        assert_eq!(rise(&before, &now).read_bytes, 80);
        // If the start time has changed, another thread has reused the id.
        assert_eq!(rise(&before, &reading(&[(7, 2, 10)])).read_bytes, 10);
    }
}
