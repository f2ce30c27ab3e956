//! Storage I/O of the kernel's own threads, from `/proc/PID/io`: what loop devices, file systems and
//! servers in the kernel submit on others' behalf. Needs root.
//!
//! A worker goes away when it has been idle for five minutes (kernel/workqueue.c, `IDLE_WORKER_TIMEOUT`),
//! and its counters with it: they are read more often than that, and nothing is lost.

use std::collections::BTreeMap;
use std::fs;

use plimsoll_evidence::observed::IoBytes;
use procfs::process::Process;

/// Time from one reading to the next.
const EVERY_NS: u64 = 30_000_000_000;
/// The kernel thread whose children are all others.
const KTHREADD: i32 = 2;

/// Counters of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    /// When it began, in ticks since boot: numbers are used again.
    started: u64,
    moved: IoBytes,
}

/// Watches the kernel's threads over a phase.
#[derive(Clone, Debug, Default)]
pub struct KernelWatch {
    last: BTreeMap<i32, Counted>,
    total: IoBytes,
    /// False where a thread's counters could not be read.
    readable: bool,
    read_at_ns: u64,
}

impl KernelWatch {
    /// Begins to count.
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

    /// Reads the counters where it is time.
    pub fn sample(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_at_ns) >= EVERY_NS {
            self.read_at_ns = now_ns;
            self.take();
        }
    }

    /// What they moved since the beginning; `None` where that cannot be read.
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

/// What moved from one reading to the next; what a new thread has moved it moved since.
fn rise(before: &BTreeMap<i32, Counted>, now: &BTreeMap<i32, Counted>) -> IoBytes {
    now.iter().fold(IoBytes::default(), |sum, (pid, now)| {
        let then = before.get(pid).filter(|then| then.started == now.started);
        sum.plus(now.moved.minus(then.map_or(IoBytes::default(), |then| then.moved)))
    })
}

fn read() -> Option<BTreeMap<i32, Counted>> {
    let children = fs::read_to_string(format!("/proc/{KTHREADD}/task/{KTHREADD}/children")).ok()?;
    let mut counted = BTreeMap::new();
    for pid in children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()) {
        // One that has gone since is none.
        let Ok(process) = Process::new(pid) else { continue };
        let Ok(stat) = process.stat() else { continue };
        match process.io() {
            Ok(io) => {
                let moved = IoBytes { read_bytes: io.read_bytes, written_bytes: io.write_bytes };
                counted.insert(pid, Counted { started: stat.starttime, moved });
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

    fn reading(threads: &[(i32, u64, u64)]) -> BTreeMap<i32, Counted> {
        let counted = |started, read_bytes| Counted {
            started,
            moved: IoBytes { read_bytes, written_bytes: 1 },
        };
        threads.iter().map(|(pid, started, read)| (*pid, counted(*started, *read))).collect()
    }

    #[test]
    fn what_threads_moved_adds_up_over_those_that_come_and_go() {
        let before = reading(&[(7, 1, 900), (8, 1, 50)]);
        let now = reading(&[(7, 1, 950), (9, 3, 30)]);
        assert_eq!(rise(&before, &now).read_bytes, 80);
        // A number that is used again is another thread.
        assert_eq!(rise(&before, &reading(&[(7, 2, 10)])).read_bytes, 10);
    }
}
