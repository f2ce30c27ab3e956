//! The load generator's own footprint: CPU, memory, and the storage I/O that it caused.

use plimsoll_evidence::observed::Generator;
use procfs::process::Process;

/// Counters of this process since its start.
#[derive(Clone, Debug)]
pub struct ProcessReading {
    user_ns: u64,
    system_ns: u64,
    storage_read_bytes: Option<u64>,
    storage_written_bytes: Option<u64>,
    resident_bytes_max: Option<u64>,
}

impl ProcessReading {
    /// Reads the counters; `None` where they cannot be read.
    ///
    /// `read_bytes` and `write_bytes` count what reached the storage layer; `rchar` would miss
    /// io_uring. The kernel's I/O workers are threads of this process and counted in its CPU time.
    pub fn now() -> Option<Self> {
        let usage = rustix::process::getrusage(rustix::process::RUsageWho::SELF);
        let process = Process::myself().ok()?;
        let io = process.io().ok();
        Some(Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            storage_read_bytes: io.as_ref().map(|io| io.read_bytes),
            storage_written_bytes: io.as_ref().map(|io| io.write_bytes),
            // The kernel counts ru_maxrss in KiB.
            resident_bytes_max: u64::try_from(usage.ru_maxrss).ok().map(|kib| kib * 1024),
        })
    }

    /// What happened since an earlier reading.
    pub fn since(&self, before: &Self) -> Generator {
        let option = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_sub(b?));
        Generator {
            user_ns: Some(self.user_ns.saturating_sub(before.user_ns)),
            system_ns: Some(self.system_ns.saturating_sub(before.system_ns)),
            storage_read_bytes: option(self.storage_read_bytes, before.storage_read_bytes),
            storage_written_bytes: option(self.storage_written_bytes, before.storage_written_bytes),
            resident_bytes_max: self.resident_bytes_max,
            lag_ns_max: None,
        }
    }
}

fn nanoseconds(time: rustix::time::Timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds * 1_000_000_000 + microseconds * 1_000
}
