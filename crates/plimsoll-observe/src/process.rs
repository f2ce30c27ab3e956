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
        let time = plimsoll_sys::cpu::process_time();
        let process = Process::myself().ok()?;
        let io = process.io().ok();
        Some(Self {
            user_ns: time.user_ns,
            system_ns: time.system_ns,
            storage_read_bytes: io.as_ref().map(|io| io.read_bytes),
            storage_written_bytes: io.as_ref().map(|io| io.write_bytes),
            // The kernel shows VmHWM in KiB.
            resident_bytes_max: process.status().ok().and_then(|s| s.vmhwm).map(|kib| kib * 1024),
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
            ..Generator::default()
        }
    }
}
