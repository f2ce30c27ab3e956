//! `[workload.trace]`.

use super::SizeShareRaw;
use crate::read::list::List;
use crate::read::section::section;
use crate::read::speed::Speed;
use crate::read::value::{Count, Name, Ratio};
use crate::resolved::{DirectIo, Layout, TraceMap};
use crate::units::{DurationNs, Percent, SizeBytes};

section! {
    /// The reads and writes of a block trace, at its own times. `plimsoll plan import TRACE` writes this section: its
    /// first fields are what the trace is.
    TraceRaw {
        /// The trace: blkparse text, fio iolog of version 2 or 3, MSR Cambridge or Alibaba CSV.
        file: Name | "required";
        /// SHA-256 of the file: another one is not replayed.
        sha256: Name | "required";
        /// Reads and writes in it.
        operations: Count | "required";
        /// Time from the first to the last.
        span: DurationNs | "required";
        /// Its share of reads.
        reads: Percent | "required";
        /// Its sizes of transfers.
        size_mix: List<SizeShareRaw> | "required";
        /// When operations start: `recorded`, so many times as fast (`2x`, `0.5x`), or `as-fast` as the target goes.
        pace: Speed = "recorded";
        /// Where operations go on a target of another size.
        map: TraceMap = "fit";
        /// Size of the file that they go to.
        file_size: SizeBytes | "required; a device is taken whole";
        /// Boundary that offsets are rounded down to, and sizes up.
        align: SizeBytes = "512B";
        /// Most operations in flight; what is due beyond that waits, and is late.
        queue_depth: Count | "256; fewer where their buffers would take more than 256 MiB";
        /// Operations that start later than this after their times, at the 99th percentile or at the end, are a replay that
        /// has fallen behind.
        lag_max: DurationNs = "100ms";
        /// Direct or buffered.
        direct: DirectIo | "`engine.direct`";
        /// How many to one the content of writes compresses; 1 is incompressible.
        compressibility: Ratio = 1.0;
        /// Whether each block carries a stamp from which damage is told.
        stamps: bool = true;
        /// What the file holds before the first operation.
        layout: Layout = "written";
    }
}
