//! `[workload.trace]`.

use super::SizeShareRaw;
use crate::read::list::List;
use crate::read::section::section;
use crate::read::speed::Speed;
use crate::read::value::{Count, Name, Ratio};
use crate::resolved::{DirectIo, Layout, TraceMap};
use crate::units::{DurationNs, Percent, SizeBytes};

section! {
    /// Replay of a block trace ([traces.md](traces.md)). `plimsoll plan import TRACE` writes this
    /// section. The first fields describe the trace.
    TraceRaw {
        /// Trace file.
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
        /// Speed of the replay.
        pace: Speed = "recorded";
        /// Mapping of the trace's addresses to a target of another size.
        map: TraceMap = "fit";
        /// Size of the target file.
        file_size: SizeBytes | "required; for a device, all of it";
        /// Alignment: offsets are rounded down to it, and sizes up.
        align: SizeBytes = "512B";
        /// Maximum operations in flight; more are delayed.
        queue_depth: Count | "256; fewer if their buffers would exceed 256 MiB";
        /// Maximum lag behind the due times, for the 99th percentile and at the end. A
        /// replay with a larger lag has fallen behind.
        lag_max: DurationNs = "100ms";
        /// Direct or buffered I/O.
        direct: DirectIo | "`engine.direct`";
        /// Compression ratio of written content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// True if each block carries a stamp that reveals damage.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
