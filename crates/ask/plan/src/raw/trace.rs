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
        /// Time from the first operation of the trace to the last operation.
        span: DurationNs | "required";
        /// Percentage of reads among the reads and writes of the trace.
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
        file_size: SizeBytes | "required, except on a block device, where it is the size of the \
                                device";
        /// Alignment of operations. Plimsoll rounds offsets down to multiples of this size, and
        /// rounds sizes up to multiples of it.
        align: SizeBytes = "512B";
        /// Maximum number of operations in flight. When this number is reached, the next operation
        /// waits.
        queue_depth: Count | "256, or less if the buffers would exceed 256 MiB";
        /// Maximum delay between the due time of an operation and its start. The limit applies to
        /// the 99th percentile of all delays and to the delay of the last operation. If one of
        /// these delays is longer than the limit, the replay has fallen behind.
        lag_max: DurationNs = "100ms";
        /// Use of direct I/O. With `auto`, direct I/O is used if the target supports it; with
        /// `required`, always; with `off`, never.
        direct: DirectIo | "`engine.direct`";
        /// Ratio by which the written content can be compressed: 4 means 4:1, and 1 means
        /// incompressible.
        compressibility: Ratio = 1.0;
        /// True if each block contains a stamp, by which Plimsoll detects damaged data.
        stamps: bool = true;
        /// Content of the file before the first operation.
        layout: Layout = "written";
    }
}
