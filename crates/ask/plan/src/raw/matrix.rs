//! `[workload.matrix]` and `[workload.fio]`.

use super::window::WindowRaw;
use crate::read::list::{List, OneOrMore, Sizes};
use crate::read::section::section;
use crate::read::value::{Count, Name, NotNegative, Ratio};
use crate::read::word::{ArrivalWord, PatternWord};
use crate::resolved::{DirectIo, Layout, SyncKind};
use crate::units::{DurationNs, OpsPerS, Percent, Share, SizeBytes};

section! {
    /// Reads, writes and metadata operations that identical clients issue. With a list in `sizes`,
    /// `reads`, `patterns` or `queue_depth`, the run is a sweep: it measures each combination of
    /// the values. Use several `[[workload.matrix]]` sections for concurrent streams.
    MatrixRaw {
        /// Name of the stream, without spaces and commas.
        name: Name | "`matrix`, then `matrix2` and so on";
        /// Transfer sizes.
        sizes: Sizes = "4KiB";
        /// Mix of transfer sizes with their percentages (instead of `sizes`).
        size_mix: List<SizeShareRaw> | "none";
        /// Transfer sizes of the writes, if they differ from those of the reads.
        write_size_mix: List<SizeShareRaw> | "`size_mix`";
        /// Percentage of reads among reads and writes.
        reads: OneOrMore<Percent> = 100;
        /// Access patterns.
        patterns: OneOrMore<PatternWord> = "random";
        /// Number of operations that each client keeps in flight (only in a closed loop).
        queue_depth: OneOrMore<Count> = 4;
        /// Exponent of the Zipf distribution (pattern `zipf`); 0 is uniform.
        zipf_exponent: NotNegative = 1.1;
        /// Share of the working set that is hot (pattern `hot-cold`).
        hot_space: Share = 0.2;
        /// Share of the operations that access the hot part (pattern `hot-cold`).
        hot_access: Share = 0.8;
        /// Distance between the starting offsets of consecutive operations (pattern `strided`).
        stride: SizeBytes = "1MiB";
        /// Standard deviation of the offsets, as a share of the working set (pattern `normal`).
        normal_deviation: Share = 0.1;
        /// Share of the working set that one pass accesses (pattern `skipping`).
        skip_density: Share = 0.1;
        /// Percentage of metadata operations among all operations.
        metadata: Percent = 0;
        /// Percentages of the kinds of metadata operations.
        metadata_mix: MetadataMixRaw = "{}";
        /// Number of shares (directories or NFS exports) over which the files are distributed.
        shares: Count | "the number of directories or exports in the target";
        /// Number of files in each share.
        files: Count = 1;
        /// Number of subdirectory levels in each share (only with `path`). Only the last level
        /// contains files.
        tree_levels: Count | "no subdirectories";
        /// Number of subdirectories in each directory above the last level.
        tree_fan_out: Count = 8;
        /// Size of each file.
        file_size: SizeBytes | "1 GiB, or the whole block device";
        /// Offset at which the working set starts in each file.
        offset: SizeBytes = "0B";
        /// Size of the working set in all files together.
        working_set: SizeBytes | "the size of all files";
        /// Each offset is a multiple of this size.
        align: SizeBytes | "the transfer size";
        /// Total number of clients. Client `i` uses share `i mod shares`.
        clients: Count | "one for each share";
        /// True if a client starts `queue_depth` operations together, and the next batch only after
        /// all of them have completed.
        batch: bool = false;
        /// Time that a client waits between two operations, or between two batches (only in a
        /// closed loop).
        think_time: DurationNs = "0s";
        /// Start times of operations. With `closed`, an operation starts when an earlier one
        /// completes. The other values are open loops: operations start at equal intervals
        /// (`constant`), at random times (`poisson`), in bursts (`bursts`) or at recorded times
        /// (`recorded`).
        arrival: ArrivalWord = "closed";
        /// Operations per second. In a closed loop, this is the maximum rate.
        rate: OpsPerS | "required for an open loop";
        /// Time in which the rate rises from 0 to `rate` at the start of the load (arrival
        /// `constant` or `poisson`).
        ramp: DurationNs = "0s";
        /// Length of a burst (arrival `bursts`).
        burst_on: DurationNs = "1s";
        /// Pause between two bursts (arrival `bursts`).
        burst_off: DurationNs = "1s";
        /// File with a start time on each line, in nanoseconds since the start of the load (arrival
        /// `recorded`).
        arrival_file: Name | "required for `recorded`";
        /// Use of direct I/O, as in `[engine]`.
        direct: DirectIo | "`engine.direct`";
        /// Method that makes writes durable.
        sync: SyncKind = "none";
        /// Number of writes after which a client syncs (only with `fsync` and `fdatasync`).
        sync_every: Count = 1;
        /// Compression ratio of the content: 4 means 4:1, and 1 means incompressible.
        compressibility: Ratio = 1.0;
        /// Share of the 4 KiB blocks that are duplicates.
        duplicates: Share = 0.0;
        /// True if each block contains a stamp, by which Plimsoll detects damaged data.
        stamps: bool = true;
        /// True if Plimsoll checks every block that it reads during the measurement, instead of one
        /// in 256.
        verify_reads: bool = false;
        /// Content of the files before the first operation.
        layout: Layout = "written";
        /// Start of the stream. With `event:NAME`, it starts at the event with this name.
        start: Name | "the start of the load";
        /// Limits that apply only to this stream, for example `{ read_latency_p99 = "5ms", iops =
        /// 3000 }`.
        requirement: WindowRaw | "none";
    }
}

section! {
    /// A transfer size and its percentage. The percentages of a mix add up to 100.
    SizeShareRaw {
        /// Transfer size.
        size: SizeBytes | "required";
        /// Percentage of operations with this size.
        share: Percent | "required";
    }
}

section! {
    /// Percentages of the kinds of metadata operations. They add up to 100.
    MetadataMixRaw {
        /// Reads of attributes.
        getattr: Percent = 40;
        /// Lookups of names.
        lookup: Percent = 20;
        /// Permission checks.
        access: Percent = 15;
        /// Directory listings.
        readdir: Percent = 5;
        /// Creations of small files.
        create: Percent = 5;
        /// Removals of small files.
        remove: Percent = 5;
        /// Renames of small files.
        rename: Percent = 5;
        /// Changes of attributes.
        setattr: Percent = 5;
    }
}

section! {
    /// A [fio job](#fio-jobs), which Plimsoll converts to streams.
    FioRaw {
        /// Path of the job file, relative to the directory of the plan.
        job: Name | "required";
        /// Sections of the job that Plimsoll converts.
        sections: List<Name> | "all";
    }
}
