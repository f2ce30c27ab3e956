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
    /// `queue_depth` accept a list; each combination of their values is a point of a sweep. Several
    /// `[[workload.matrix]]` sections are concurrent streams.
    MatrixRaw {
        /// Name of the stream and of its latencies; it must not contain spaces or commas.
        name: Name | "`matrix`, with a number after it from the second stream on";
        /// Transfer sizes.
        sizes: Sizes = "4KiB";
        /// Mix of several transfer sizes in one stream, instead of `sizes`.
        size_mix: List<SizeShareRaw> | "none";
        /// Mix of the sizes of writes, if it differs from that of reads.
        write_size_mix: List<SizeShareRaw> | "the mix of the reads";
        /// Percentage of reads among reads and writes.
        reads: OneOrMore<Percent> = 100;
        /// Access patterns.
        patterns: OneOrMore<PatternWord> = "random";
        /// Number of operations that each client has in flight (closed loop).
        queue_depth: OneOrMore<Count> = 4;
        /// Exponent of the Zipf distribution (`zipf`); 0 is uniform.
        zipf_exponent: NotNegative = 1.1;
        /// Hot part of the working set, as a share (`hot-cold`).
        hot_space: Share = 0.2;
        /// Share of the operations that access the hot part (`hot-cold`).
        hot_access: Share = 0.8;
        /// Distance between the starting offsets of consecutive operations (`strided`).
        stride: SizeBytes = "1MiB";
        /// Standard deviation as a share of the working set (`normal`).
        normal_deviation: Share = 0.1;
        /// Share of the working set that one pass accesses (`skipping`).
        skip_density: Share = 0.1;
        /// Percentage of metadata operations among all operations.
        metadata: Percent = 0;
        /// Percentages of the metadata operations.
        metadata_mix: MetadataMixRaw = "{}";
        /// Number of directories or exports that the files are distributed over.
        shares: Count | "the number in the target";
        /// Files per directory or export.
        files: Count = 1;
        /// Levels of subdirectories in each share. Only the last level contains files (`path`).
        tree_levels: Count | "none: all files of a share are in one directory";
        /// Subdirectories per directory.
        tree_fan_out: Count = 8;
        /// File size.
        file_size: SizeBytes | "1 GiB; the whole device on a device";
        /// Start of the working set in each file.
        offset: SizeBytes = "0B";
        /// Size of the working set over all files.
        working_set: SizeBytes | "everything";
        /// Alignment of offsets.
        align: SizeBytes | "the size of the transfer";
        /// Total number of clients. Client `i` uses share number `i mod shares`.
        clients: Count | "one per share";
        /// True if a client waits until its whole batch has completed before it starts the next
        /// batch.
        batch: bool = false;
        /// Pause of a client between operations (closed loop).
        think_time: DurationNs = "0s";
        /// `closed`: an operation starts when an earlier operation completes. The other words are
        /// open loops: operations start at equal intervals, at random, in bursts, or at recorded
        /// times.
        arrival: ArrivalWord = "closed";
        /// Operations per second: the rate of an open loop, or the rate limit of a closed loop.
        rate: OpsPerS | "required for an open loop";
        /// Time in which the rate rises from 0 to `rate` (`constant`, `poisson`).
        ramp: DurationNs = "0s";
        /// Length of a burst (`bursts`).
        burst_on: DurationNs = "1s";
        /// Pause between bursts (`bursts`).
        burst_off: DurationNs = "1s";
        /// File with one start time per line, in nanoseconds since the start of the load
        /// (`recorded`).
        arrival_file: Name | "required for `recorded`";
        /// Direct or buffered I/O.
        direct: DirectIo | "`engine.direct`";
        /// Durability of writes.
        sync: SyncKind = "none";
        /// Number of writes of a client between two syncs (`fsync`, `fdatasync`).
        sync_every: Count = 1;
        /// Compression ratio of the content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// Share of duplicate 4 KiB blocks.
        duplicates: Share = 0.0;
        /// True if each block contains a stamp that reveals damage.
        stamps: bool = true;
        /// True to check every block that is read during the measurement; false to check one block
        /// in 256.
        verify_reads: bool = false;
        /// Content of the files before the first operation.
        layout: Layout = "written";
        /// Start of the stream. With `event:NAME`, it starts at that event.
        start: Name | "at the start of the load";
        /// Limits for this stream only: `{ read_latency_p99 = "5ms", iops = 3000 }`.
        requirement: WindowRaw | "none";
    }
}

section! {
    /// Transfer size and the percentage of operations with that size. The percentages add up to
    /// 100.
    SizeShareRaw {
        /// Transfer size.
        size: SizeBytes | "required";
        /// Percentage.
        share: Percent | "required";
    }
}

section! {
    /// Percentages of the metadata operations. They add up to 100.
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
    /// fio job that is converted to streams. The report lists the options that could not be
    /// converted.
    FioRaw {
        /// Job file. Its path is relative to the directory of the plan.
        job: Name | "required";
        /// Sections of the job that are used.
        sections: List<Name> | "all";
    }
}
