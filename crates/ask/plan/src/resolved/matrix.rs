//! Resolved I/O matrix: streams of identical clients, and the axes of a sweep.

use serde::{Deserialize, Serialize};

use super::trace::TraceSource;
use super::words::{DirectIo, Layout, SyncKind};

/// Concurrent streams, and the points of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Axes of the sweep, which vary the first stream. If there are several streams, each axis has
    /// one value.
    pub axes: MatrixAxes,
    /// The streams. The first has the first value of each axis.
    pub streams: Vec<Stream>,
    /// Imported job that the streams come from; `None` if they come from the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedJob>,
}

/// Values of a sweep. Points are ordered by pattern first, then by depth, by size, and by
/// percentage of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixAxes {
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Queue depths per client.
    pub queue_depths: Vec<u32>,
    /// Transfer sizes. Empty if the stream uses a mix of sizes.
    pub sizes_bytes: Vec<u64>,
    /// Percentages of reads.
    pub read_percents: Vec<f64>,
}

/// Imported job of another tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedJob {
    /// Path of the job file, as written in the plan.
    pub job: String,
    /// Options that could not be imported, each with its meaning.
    pub notes: Vec<String>,
}

/// Identical clients with the same mix of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Name, unique in the plan.
    pub name: String,
    /// Total number of clients. Client `i` uses share number `i mod shares`.
    pub clients: u32,
    /// Number of operations that each client has in flight (closed loop).
    pub queue_depth: u32,
    /// True if a client waits until its whole batch of `queue_depth` operations has completed
    /// before it starts the next batch.
    pub batch: bool,
    /// Percentage of reads among reads and writes.
    pub read_percent: f64,
    /// Percentage of metadata operations among all operations.
    pub metadata_percent: f64,
    /// Alignment of offsets; 0 to align them to the transfer size.
    pub align_bytes: u64,
    /// Pause of a client between operations (closed loop).
    pub think_time_ns: u64,
    /// Direct or buffered I/O.
    pub direct: DirectIo,
    /// Content of the files before the first operation.
    pub layout: Layout,
    /// True to check the stamps in all blocks that are read during the measurement.
    pub verify_reads: bool,
    /// Transfer sizes and their percentages, which add up to 100.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes if they differ from the sizes of reads; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<SizeShare>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Start times of operations.
    pub arrival: Arrival,
    /// Durability of writes.
    pub sync: SyncPolicy,
    /// Content of blocks.
    pub content: Content,
    /// The files, or the part of a device.
    pub files: FileSet,
    /// Percentages of the metadata operations.
    pub metadata_mix: MetadataMix,
    /// Trace to replay, which determines offsets and order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSource>,
    /// Event at which the stream starts; `None` if it starts with the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_event: Option<String>,
}

/// Transfer size and the percentage of operations with that size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeShare {
    /// Transfer size in bytes.
    pub size_bytes: u64,
    /// Percentage.
    pub share_percent: f64,
}

/// Access pattern within the working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pattern {
    /// Uniform.
    Random,
    /// Each block exactly once per pass, in random order. The clients share the pass: client `i` of
    /// `n` accesses every `n`-th block of it, starting with the `i`-th block.
    Permutation,
    /// Ascending; each client has its own cursor.
    Sequential,
    /// Ascending; all clients share one cursor.
    SequentialShared,
    /// At offsets with a fixed distance.
    Strided {
        /// Distance between the starting offsets of consecutive operations.
        stride_bytes: u64,
    },
    /// Zipf distribution of the ranks of blocks. Blocks of similar rank are scattered over the
    /// working set.
    Zipf {
        /// Exponent; 0 is uniform.
        exponent: f64,
    },
    /// A hot part receives most operations. Within each part, the distribution is uniform.
    HotCold {
        /// Hot part of the working set, as a share.
        hot_space: f64,
        /// Share of the operations that access the hot part.
        hot_access: f64,
    },
    /// Normal distribution around the middle of the working set.
    Normal {
        /// Standard deviation as a share of the working set.
        deviation: f64,
    },
    /// Ascending, with gaps of random length; each client has its own cursor.
    Skipping {
        /// Share of the working set that one pass accesses.
        density: f64,
    },
    /// Offsets of a trace.
    Trace,
}

impl Stream {
    /// Number of operations that the clients of the stream have in flight (closed loop).
    pub fn outstanding(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.queue_depth)
    }
}

impl Pattern {
    /// Words for patterns in a plan. A trace has no word, because it has its own section.
    pub const WORDS: &'static [&'static str] = &[
        "random",
        "permutation",
        "sequential",
        "sequential-shared",
        "strided",
        "zipf",
        "hot-cold",
        "normal",
        "skipping",
    ];

    /// Returns the word for the pattern in a plan.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Permutation => "permutation",
            Self::Sequential => "sequential",
            Self::SequentialShared => "sequential-shared",
            Self::Strided { .. } => "strided",
            Self::Zipf { .. } => "zipf",
            Self::HotCold { .. } => "hot-cold",
            Self::Normal { .. } => "normal",
            Self::Skipping { .. } => "skipping",
            Self::Trace => "trace",
        }
    }

    /// Returns true if each offset depends on the previous one.
    #[must_use]
    pub const fn is_sequential(&self) -> bool {
        matches!(self, Self::Sequential | Self::SequentialShared)
    }
}

/// Start times of operations. A rate is the rate of the whole stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrival {
    /// Closed loop: an operation starts when an earlier operation has completed.
    Closed {
        /// Rate limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate_cap_per_s: Option<f64>,
    },
    /// Open loop: operations start at equal intervals.
    Constant {
        /// Operations per second.
        rate_per_s: f64,
        /// Time in which the rate rises from 0.
        ramp_ns: u64,
    },
    /// Open loop: the intervals between operations are exponentially distributed.
    Poisson {
        /// Mean operations per second.
        rate_per_s: f64,
        /// Time in which the rate rises from 0.
        ramp_ns: u64,
    },
    /// Open loop: Poisson arrivals during a burst, no arrivals during a pause.
    Bursts {
        /// Operations per second during a burst.
        rate_per_s: f64,
        /// Length of a burst.
        on_ns: u64,
        /// Pause between bursts.
        off_ns: u64,
    },
    /// Open loop: operations start at recorded times.
    Recorded {
        /// File with one start time per line, in nanoseconds since the start of the load.
        file: String,
    },
}

impl Arrival {
    /// Returns true if operations start independently of completions.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }
}

/// Durability of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncPolicy {
    /// Call that makes writes durable.
    pub kind: SyncKind,
    /// Number of writes of a client between two syncs (`fsync` and `fdatasync`).
    pub every_writes: u32,
}

/// Content of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// Compression ratio, N to 1. 1 is incompressible.
    pub compressibility: f64,
    /// Share of duplicate 4 KiB blocks.
    pub duplicate_share: f64,
    /// True if each block contains a stamp that reveals damage.
    pub stamps: bool,
}

/// Files of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// Number of directories or exports that the files are distributed over.
    pub shares: u32,
    /// Files per directory or export.
    pub files_per_share: u32,
    /// File size; `None` if the stream uses a whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Start of the working set in each file or the device.
    pub offset_bytes: u64,
    /// Size of the working set over all files; `None` for all data of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Levels of subdirectories per share; 0 if a share's files are in one directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_levels: u32,
    /// Number of subdirectories in each directory; 0 without a tree.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_fan_out: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FileSet {
    /// Returns the number of directories in the last level of each share's tree; 1 without a tree.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        self.tree_fan_out.max(1).saturating_pow(self.tree_levels)
    }

    /// Returns the total number of files.
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.shares) * u64::from(self.files_per_share)
    }

    /// Returns the total size of all files; `None` if the stream uses a whole device.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.file_size_bytes.map(|size| size.saturating_mul(self.files()))
    }
}

/// Percentages of the metadata operations. They add up to 100, or to 0 if there are no such
/// operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetadataMix {
    /// Reads of attributes.
    pub getattr_percent: f64,
    /// Lookups of names.
    pub lookup_percent: f64,
    /// Permission checks.
    pub access_percent: f64,
    /// Directory listings.
    pub readdir_percent: f64,
    /// Creations of small files.
    pub create_percent: f64,
    /// Removals of small files.
    pub remove_percent: f64,
    /// Renames of small files.
    pub rename_percent: f64,
    /// Changes of attributes.
    pub setattr_percent: f64,
}

impl Matrix {
    /// Returns the number of operations that all clients have in flight (closed loops).
    pub fn outstanding(&self) -> u64 {
        self.streams.iter().map(Stream::outstanding).sum()
    }

    /// Returns true if any point reads data.
    #[must_use]
    pub fn reads(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p > 0.0)
    }

    /// Returns true if any point writes data.
    #[must_use]
    pub fn writes(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p < 100.0)
    }
}
