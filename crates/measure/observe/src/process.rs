//! Reads the resource usage of the load generator: CPU time, memory and storage I/O.

use std::collections::BTreeMap;

use plimsoll_evidence::observed::Generator;
use procfs::process::Process;

/// Counters of this process since its start.
#[derive(Clone, Debug)]
pub struct ProcessReading {
    user_ns: u64,
    system_ns: u64,
    storage_read_bytes: Option<u64>,
    storage_written_bytes: Option<u64>,
    storage_cancelled_bytes: Option<u64>,
    resident_bytes_max: Option<u64>,
    major_faults: Option<u64>,
    /// Number of voluntary and number of involuntary context switches, summed over all live
    /// threads.
    switches: Option<(u64, u64)>,
    /// CPU time of each thread.
    threads_ns: BTreeMap<i32, u64>,
}

impl ProcessReading {
    /// Reads the counters; `None` if they are not readable.
    ///
    /// `read_bytes` and `write_bytes` count I/O at the storage layer. `rchar` is not used, because
    /// it does not include the I/O of io_uring. The kernel's I/O workers are threads of this
    /// process, so its CPU time includes them.
    pub fn now() -> Option<Self> {
        let time = plimsoll_sys::cpu::process_time();
        let process = Process::myself().ok()?;
        let io = process.io().ok();
        let status = process.status().ok();
        let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
        let mut threads_ns = BTreeMap::new();
        let (mut voluntary, mut forced, mut seen) = (0, 0, false);
        for task in process.tasks().into_iter().flatten().flatten() {
            if let Ok(stat) = task.stat() {
                threads_ns.insert(task.tid, (stat.utime + stat.stime).saturating_mul(tick_ns));
            }
            if let Ok(status) = task.status() {
                voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
                forced += status.nonvoluntary_ctxt_switches.unwrap_or(0);
                seen |= status.voluntary_ctxt_switches.is_some();
            }
        }
        Some(Self {
            user_ns: time.user_ns,
            system_ns: time.system_ns,
            storage_read_bytes: io.as_ref().map(|io| io.read_bytes),
            storage_written_bytes: io.as_ref().map(|io| io.write_bytes),
            storage_cancelled_bytes: io.as_ref().map(|io| io.cancelled_write_bytes),
            // The kernel reports VmHWM in KiB.
            resident_bytes_max: status.and_then(|s| s.vmhwm).map(|kib| kib * 1024),
            major_faults: process.stat().ok().map(|stat| stat.majflt),
            switches: seen.then_some((voluntary, forced)),
            threads_ns,
        })
    }

    /// Returns the CPU time that the busiest thread used between two readings.
    pub fn busiest_thread_ns_since(&self, before: &Self) -> Option<u64> {
        let rise = |(tid, now): (&i32, &u64)| {
            now.saturating_sub(before.threads_ns.get(tid).copied().unwrap_or(0))
        };
        self.threads_ns.iter().map(rise).max()
    }

    /// Returns the increase of the counters since an earlier reading.
    pub fn since(&self, before: &Self) -> Generator {
        let option = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_sub(b?));
        let part =
            |of: fn((u64, u64)) -> u64| option(self.switches.map(of), before.switches.map(of));
        Generator {
            user_ns: Some(self.user_ns.saturating_sub(before.user_ns)),
            system_ns: Some(self.system_ns.saturating_sub(before.system_ns)),
            storage_read_bytes: option(self.storage_read_bytes, before.storage_read_bytes),
            storage_written_bytes: option(self.storage_written_bytes, before.storage_written_bytes),
            storage_cancelled_bytes: option(
                self.storage_cancelled_bytes,
                before.storage_cancelled_bytes,
            ),
            resident_bytes_max: self.resident_bytes_max,
            major_faults: option(self.major_faults, before.major_faults),
            switches_voluntary: part(|(voluntary, _)| voluntary),
            switches_forced: part(|(_, forced)| forced),
            ..Generator::default()
        }
    }
}
