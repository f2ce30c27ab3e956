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
    /// this section. The fields up to `size_mix` describe the trace; the remaining fields control
    /// the replay.
    TraceRaw {
        /// Path of the trace file.
        file: Name | "required";
        /// SHA-256 of the trace file. Plimsoll rejects a file with a different hash.
        sha256: Name | "required";
        /// Number of reads and writes in the trace.
        operations: Count | "required";
        /// Time from the first operation of the trace to the last.
        span: DurationNs | "required";
        /// Percentage of reads among reads and writes.
        reads: Percent | "required";
        /// Transfer sizes in the trace, with the percentage of each size.
        size_mix: List<SizeShareRaw> | "required";
        /// Speed of the replay.
        pace: Speed = "recorded";
        /// Method by which addresses of the trace are mapped to the target, whose size may differ
        /// from the traced device. [traces.md](traces.md#mapping-to-a-target-of-another-size)
        /// describes each method.
        map: TraceMap = "fit";
        /// Size of the target file.
        file_size: SizeBytes | "required; on a block device, the whole device";
        /// Alignment of operations. Plimsoll rounds offsets down and sizes up to multiples of this
        /// size.
        align: SizeBytes = "512B";
        /// Maximum number of operations in flight. While this number is reached, further operations
        /// are delayed.
        queue_depth: Count | "256, or less if the buffers would exceed 256 MiB";
        /// Maximum delay between the due time of an operation and its start. It applies to the 99th
        /// percentile and to the last operation. If either delay is larger, the replay has fallen
        /// behind.
        lag_max: DurationNs = "100ms";
        /// Whether the replay uses direct I/O if possible (`auto`), always (`required`) or never
        /// (`off`).
        direct: DirectIo | "`engine.direct`";
        /// Compression ratio of written content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// True if each block contains a stamp, by which Plimsoll detects damaged data.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
