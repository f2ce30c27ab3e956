//! `[workload.matrix]` and `[workload.fio]`.

use super::window::WindowRaw;
use crate::read::list::{List, OneOrMore, Sizes};
use crate::read::section::section;
use crate::read::value::{Count, Name, NotNegative, Ratio};
use crate::read::word::{ArrivalWord, PatternWord};
use crate::resolved::{DirectIo, Layout, SyncKind};
use crate::units::{DurationNs, OpsPerS, Percent, Share, SizeBytes};

section! {
    /// Reads, writes and metadata operations of identical clients. `sizes`, `reads`, `patterns` and
    /// `queue_depth` accept a list; each combination is a point of a sweep. Several
    /// `[[workload.matrix]]` sections are concurrent streams.
    MatrixRaw {
        /// Name of the stream and its latencies; no spaces or commas.
        name: Name | "`matrix`, with a number from the second stream on";
        /// Transfer sizes.
        sizes: Sizes = "4KiB";
        /// Mix of transfer sizes in one stream, instead of `sizes`.
        size_mix: List<SizeShareRaw> | "none";
        /// Mix of write sizes, if different.
        write_size_mix: List<SizeShareRaw> | "that of the reads";
        /// Percentage of reads among data operations.
        reads: OneOrMore<Percent> = 100;
        /// Access patterns.
        patterns: OneOrMore<PatternWord> = "random";
        /// Outstanding operations per client (closed loop).
        queue_depth: OneOrMore<Count> = 4;
        /// Exponent of the Zipf distribution (`zipf`); 0 is uniform.
        zipf_exponent: NotNegative = 1.1;
        /// Hot share of the space (`hot-cold`).
        hot_space: Share = 0.2;
        /// Share of the operations in the hot space (`hot-cold`).
        hot_access: Share = 0.8;
        /// Distance between starting offsets (`strided`).
        stride: SizeBytes = "1MiB";
        /// Standard deviation as a share of the working set (`normal`).
        normal_deviation: Share = 0.1;
        /// Share of the space that one pass touches (`skipping`).
        skip_density: Share = 0.1;
        /// Percentage of metadata operations among all operations.
        metadata: Percent = 0;
        /// Percentages of the metadata operations.
        metadata_mix: MetadataMixRaw = "{}";
        /// Number of directories or exports that the files are distributed over.
        shares: Count | "the number in the target";
        /// Files per directory or export.
        files: Count = 1;
        /// Levels of subdirectories per share. The files are in the last level (`path`).
        tree_levels: Count | "none: one directory per share";
        /// Subdirectories per directory.
        tree_fan_out: Count = 8;
        /// File size.
        file_size: SizeBytes | "1 GiB; for a device, all of it";
        /// Start of the working set in each file.
        offset: SizeBytes = "0B";
        /// Size of the working set, over all files.
        working_set: SizeBytes | "everything";
        /// Alignment of offsets.
        align: SizeBytes | "the size of the transfer";
        /// Total number of clients. Client `i` uses share `i mod shares`.
        clients: Count | "one per share";
        /// True if a client waits for its whole batch before the next.
        batch: bool = false;
        /// Pause of a client between operations (closed loop).
        think_time: DurationNs = "0s";
        /// `closed`: an operation starts when an earlier one completes. The others are open loops:
        /// evenly spaced, random, in bursts, or at recorded times.
        arrival: ArrivalWord = "closed";
        /// Operations per second: rate of an open loop, or limit of a closed loop.
        rate: OpsPerS | "required for an open loop";
        /// Time in which the rate increases from 0 (`constant`, `poisson`).
        ramp: DurationNs = "0s";
        /// Length of a burst (`bursts`).
        burst_on: DurationNs = "1s";
        /// Pause between bursts (`bursts`).
        burst_off: DurationNs = "1s";
        /// File with one start time per line, in nanoseconds from the beginning (`recorded`).
        arrival_file: Name | "required for `recorded`";
        /// Direct or buffered I/O.
        direct: DirectIo | "`engine.direct`";
        /// Durability of writes.
        sync: SyncKind = "none";
        /// Writes of a client per sync (`fsync`, `fdatasync`).
        sync_every: Count = 1;
        /// Compression ratio of the content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// Share of duplicate 4 KiB blocks.
        duplicates: Share = 0.0;
        /// True if each block carries a stamp that reveals damage.
        stamps: bool = true;
        /// True to check every read during the measurement; false checks one block in 256.
        verify_reads: bool = false;
        /// Content of the files before the first operation.
        layout: Layout = "written";
        /// Start of the stream: `event:NAME` waits for that event.
        start: Name | "with the load";
        /// Limits of this stream: `{ read_latency_p99 = "5ms", iops = 3000 }`.
        requirement: WindowRaw | "none";
    }
}

section! {
    /// Transfer size and its percentage; their sum is 100.
    SizeShareRaw {
        /// Transfer size.
        size: SizeBytes | "required";
        /// Percentage.
        share: Percent | "required";
    }
}

section! {
    /// Percentages of the metadata operations; their sum is 100.
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
    /// fio job, converted to streams. The report lists options that could not be converted.
    FioRaw {
        /// Job file, relative to the plan's directory.
        job: Name | "required";
        /// Sections of the job to use.
        sections: List<Name> | "all";
    }
}
