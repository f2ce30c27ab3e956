//! `[workload.trace]`.

use super::SizeShareRaw;
use crate::read::list::List;
use crate::read::section::section;
use crate::read::speed::Speed;
use crate::read::value::{Count, Name, Ratio};
use crate::resolved::{DirectIo, Layout, TraceMap};
use crate::units::{DurationNs, Percent, SizeBytes};

section! {
    /// Replay of a block trace ([traces.md](traces.md)). `plimsoll plan import TRACE` generates
    /// this section. The first fields describe the trace.
    TraceRaw {
        /// Trace file.
        file: Name | "required";
        /// SHA-256 of the file. A file with another hash is rejected.
        sha256: Name | "required";
        /// Number of reads and writes.
        operations: Count | "required";
        /// Time from the first operation of the trace to the last.
        span: DurationNs | "required";
        /// Percentage of reads.
        reads: Percent | "required";
        /// Mix of transfer sizes.
        size_mix: List<SizeShareRaw> | "required";
        /// Speed of the replay.
        pace: Speed = "recorded";
        /// Mapping of the trace's addresses to a target that has another size than the traced
        /// device.
        map: TraceMap = "fit";
        /// Size of the target file.
        file_size: SizeBytes | "required; the whole device on a device";
        /// Alignment: offsets are rounded down, and sizes are rounded up.
        align: SizeBytes = "512B";
        /// Maximum number of operations in flight; further operations are delayed.
        queue_depth: Count | "256; fewer if the buffers would exceed 256 MiB";
        /// Maximum lag of operations after their due times, for the 99th percentile and for the
        /// last operation. If the lag is larger, the replay has fallen behind.
        lag_max: DurationNs = "100ms";
        /// Direct or buffered I/O.
        direct: DirectIo | "`engine.direct`";
        /// Compression ratio of written content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// True if each block contains a stamp that reveals damage.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
