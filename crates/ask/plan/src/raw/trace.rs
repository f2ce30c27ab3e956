//! `[workload.trace]`.

use super::SizeShareRaw;
use crate::read::list::List;
use crate::read::section::section;
use crate::read::speed::Speed;
use crate::read::value::{Count, Name, Ratio};
use crate::resolved::{DirectIo, Layout, TraceMap};
use crate::units::{DurationNs, Percent, SizeBytes};

section! {
    /// Replay of a [block trace](traces.md). `plimsoll plan import TRACE` generates this section.
    /// The fields up to `size_mix` describe the trace; the others control the replay.
    TraceRaw {
        /// Path of the trace file.
        file: Name | "required";
        /// SHA-256 of the trace file.
        sha256: Name | "required";
        /// Number of reads and writes in the trace.
        operations: Count | "required";
        /// Time from the first to the last operation.
        span: DurationNs | "required";
        /// Percentage of reads among reads and writes.
        reads: Percent | "required";
        /// Transfer sizes with their percentages.
        size_mix: List<SizeShareRaw> | "required";
        /// Speed of the replay.
        pace: Speed = "recorded";
        /// [Method](traces.md#mapping-to-a-target-of-another-size) that maps the addresses of the
        /// trace to the target.
        map: TraceMap = "fit";
        /// Size of the target file.
        file_size: SizeBytes | "required, except on a block device: the whole device";
        /// Alignment of operations. Plimsoll rounds offsets down and sizes up to multiples of this
        /// size.
        align: SizeBytes = "512B";
        /// Maximum number of operations in flight.
        queue_depth: Count | "256, or less if the buffers would exceed 256 MiB";
        /// Maximum delay between the due time of an operation and its start. The limit applies to
        /// the 99th percentile of all delays and to the delay of the last operation.
        lag_max: DurationNs = "100ms";
        /// Use of direct I/O, as in `[engine]`.
        direct: DirectIo | "`engine.direct`";
        /// Compression ratio of the written content: 4 means 4:1, and 1 means incompressible.
        compressibility: Ratio = 1.0;
        /// True if each block contains a stamp, by which Plimsoll detects damaged data.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
