//! `[workload.matrix]` and `[workload.fio]`.

use crate::read::list::{List, OneOrMore, Sizes};
use crate::read::section::section;
use crate::read::value::{Count, Name, NotNegative, Ratio};
use crate::read::word::{ArrivalWord, PatternWord};
use crate::resolved::{DirectIo, Layout, SyncKind};
use crate::units::{DurationNs, OpsPerS, Percent, Share, SizeBytes};

section! {
    /// Reads, writes and metadata operations of like clients. `sizes`, `reads`, `patterns` and
    /// `queue_depth` take a list, and each combination is a point of a sweep.
    MatrixRaw {
        /// Name of the stream, without spaces and commas: its latencies are logged under it.
        name: Name | "`matrix`, with a number from the second stream on";
        /// Sizes of one transfer.
        sizes: Sizes = "4KiB";
        /// Sizes mixed in one stream, instead of `sizes`.
        size_mix: List<SizeShareRaw> | "none";
        /// Sizes of writes, where they differ from those of reads.
        write_size_mix: List<SizeShareRaw> | "as the reads";
        /// Read share of the data operations.
        reads: OneOrMore<Percent> = 100;
        /// Where operations go.
        patterns: OneOrMore<PatternWord> = "random";
        /// Operations that each client keeps outstanding (closed loop).
        queue_depth: OneOrMore<Count> = 4;
        /// Exponent of Zipf's law (`zipf`); 0 is uniform.
        zipf_exponent: NotNegative = 1.1;
        /// Share of the space that is hot (`hot-cold`).
        hot_space: Share = 0.2;
        /// Share of the operations that go there (`hot-cold`).
        hot_access: Share = 0.8;
        /// Distance from one start to the next (`strided`).
        stride: SizeBytes = "1MiB";
        /// Standard deviation as a share of the working set (`normal`).
        normal_deviation: Share = 0.1;
        /// Share of the space that one pass touches (`skipping`).
        skip_density: Share = 0.1;
        /// Share of metadata operations in all operations.
        metadata: Percent = 0;
        /// Shares of the metadata operations.
        metadata_mix: MetadataMixRaw = "{}";
        /// Directories or exports that the files are dealt to.
        shares: Count | "as many as the target names";
        /// Files in each of them.
        files: Count = 1;
        /// Levels of directories below each share, over whose last level its files are dealt (`path`).
        tree_levels: Count | "none: a share's files lie in one directory";
        /// Directories in each directory of such a tree.
        tree_fan_out: Count = 8;
        /// Size of a file.
        file_size: SizeBytes | "1 GiB; a device is taken whole";
        /// Where in each file the working set begins.
        offset: SizeBytes = "0B";
        /// Bytes that operations go to, all files together.
        working_set: SizeBytes | "everything";
        /// Boundary that offsets are multiples of.
        align: SizeBytes | "the size of the transfer";
        /// Clients in all; client `i` works on share `i mod shares`.
        clients: Count | "one per share";
        /// Whether a client waits for its whole batch before the next.
        batch: bool = false;
        /// Pause of a client between operations (closed loop).
        think_time: DurationNs = "0s";
        /// `closed`: when an earlier operation has completed. The others are open loops: evenly
        /// spaced, random, in bursts, or at recorded times.
        arrival: ArrivalWord = "closed";
        /// Operations per second of the stream: the rate of an open loop, a ceiling of a closed one.
        rate: OpsPerS | "required for an open loop";
        /// Time over which the rate climbs from 0 (`constant`, `poisson`).
        ramp: DurationNs = "0s";
        /// Length of a burst (`bursts`).
        burst_on: DurationNs = "1s";
        /// Pause between bursts (`bursts`).
        burst_off: DurationNs = "1s";
        /// File with one start per line, in nanoseconds from the beginning (`recorded`).
        arrival_file: Name | "required for `recorded`";
        /// Direct or buffered.
        direct: DirectIo | "`engine.direct`";
        /// When writes are made durable.
        sync: SyncKind = "none";
        /// After how many writes of a client (`fsync`, `fdatasync`).
        sync_every: Count = 1;
        /// How many to one the content compresses; 1 is incompressible.
        compressibility: Ratio = 1.0;
        /// Share of 4 KiB blocks that are copies of others.
        duplicates: Share = 0.0;
        /// Whether each block carries a stamp from which damage is told.
        stamps: bool = true;
        /// Whether every read is checked against what was written, while measuring. Otherwise one block in 256 is.
        verify_reads: bool = false;
        /// What the files hold before the first operation.
        layout: Layout = "written";
    }
}

section! {
    /// A size of transfers and its share; the shares of a mix add up to 100.
    SizeShareRaw {
        /// Size of one transfer.
        size: SizeBytes | "required";
        /// Its share.
        share: Percent | "required";
    }
}

section! {
    /// Shares of the metadata operations; they add up to 100.
    MetadataMixRaw {
        /// Attributes read.
        getattr: Percent = 40;
        /// Names looked up.
        lookup: Percent = 20;
        /// Permissions asked.
        access: Percent = 15;
        /// Directories listed.
        readdir: Percent = 5;
        /// Small files made.
        create: Percent = 5;
        /// Such files removed.
        remove: Percent = 5;
        /// Such files renamed.
        rename: Percent = 5;
        /// Attributes set.
        setattr: Percent = 5;
    }
}

section! {
    /// A fio job, turned into streams; what can't be carried over is listed in the report.
    FioRaw {
        /// The job file, from the plan's directory.
        job: Name | "required";
        /// Sections of the job to take.
        sections: List<Name> | "all";
    }
}
