//! `[workload.trace]`.

use super::SizeShareRaw;
use crate::read::list::List;
use crate::read::section::section;
use crate::read::speed::Speed;
use crate::read::value::{Count, Name, Ratio};
use crate::resolved::{DirectIo, Layout, TraceMap};
use crate::units::{DurationNs, Percent, SizeBytes};

section! {
    /// Replay of a block trace at its recorded times. `plimsoll plan import TRACE` writes this
    /// section. The first fields describe the trace.
    TraceRaw {
        /// Trace file: blkparse text, fio iolog version 2 or 3, or CSV of MSR Cambridge, Alibaba, Tencent, SPC or SYSTOR '17.
        file: Name | "required";
        /// SHA-256 of the file. A different file is rejected.
        sha256: Name | "required";
        /// Number of reads and writes.
        operations: Count | "required";
        /// Time from the first operation to the last.
        span: DurationNs | "required";
        /// Percentage of reads.
        reads: Percent | "required";
        /// Mix of transfer sizes.
        size_mix: List<SizeShareRaw> | "required";
        /// Speed: `recorded`, a multiple (`2x`, `0.5x`), or `as-fast` as possible.
        pace: Speed = "recorded";
        /// Mapping of the trace's addresses to a target of another size.
        map: TraceMap = "fit";
        /// Size of the target file.
        file_size: SizeBytes | "required; the whole of a device";
        /// Alignment: offsets are rounded down to it, and sizes up.
        align: SizeBytes = "512B";
        /// Maximum operations in flight. Operations due beyond that are delayed.
        queue_depth: Count | "256; fewer where their buffers would take more than 256 MiB";
        /// Maximum lag of operations behind their due times, for the 99th percentile and at the
        /// end. Beyond that, the replay has fallen behind.
        lag_max: DurationNs = "100ms";
        /// Direct or buffered I/O.
        direct: DirectIo | "`engine.direct`";
        /// Compression ratio of written content, N to 1. 1 is incompressible.
        compressibility: Ratio = 1.0;
        /// True if each block carries a stamp that reveals damage.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
