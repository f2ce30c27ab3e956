//! The resolved I/O matrix: streams of identical clients, and the axes of a sweep.

use serde::{Deserialize, Serialize};

use super::trace::TraceSource;
use super::words::{DirectIo, Layout, SyncKind};

/// A workload that consists of concurrent streams, or of a single stream that a sweep varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Axes of the sweep. The sweep varies the first stream. If there are several streams, each
    /// axis has only one value.
    pub axes: MatrixAxes,
    /// Concurrent streams. The first stream has the first value of each axis.
    pub streams: Vec<Stream>,
    /// The imported job from which the streams were created. `None` if the plan itself describes
    /// the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedJob>,
}

/// Values that a sweep combines. The points are ordered by pattern, then by queue depth, size, and
/// percentage of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixAxes {
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Number of operations that each client keeps in flight.
    pub queue_depths: Vec<u32>,
    /// Transfer sizes. The list is empty if the stream uses a mix of sizes.
    pub sizes_bytes: Vec<u64>,
    /// Percentages of reads among reads and writes.
    pub read_percents: Vec<f64>,
}

/// A job of another tool that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedJob {
    /// Path of the job file, as written in the plan.
    pub job: String,
    /// Options of the job that could not be imported. Each entry states an option and its meaning.
    pub notes: Vec<String>,
}

/// A stream: identical clients that issue the same mix of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Name of the stream, which is unique in the plan.
    pub name: String,
    /// Total number of clients. Client `i` uses the share with the number `i mod shares`.
    pub clients: u32,
    /// Number of operations that each client keeps in flight. It is used only in a closed loop.
    pub queue_depth: u32,
    /// True if a client starts `queue_depth` operations together, and starts the next batch only
    /// when all of them have completed.
    pub batch: bool,
    /// Percentage of reads among reads and writes.
    pub read_percent: f64,
    /// Percentage of metadata operations among all operations.
    pub metadata_percent: f64,
    /// Each offset is a multiple of this size. If the value is 0, each offset is a multiple of the
    /// transfer size.
    pub align_bytes: u64,
    /// Time that a client waits between two operations. It is used only in a closed loop.
    pub think_time_ns: u64,
    /// States whether the stream uses direct I/O or buffered I/O.
    pub direct: DirectIo,
    /// Content of the files before the first operation.
    pub layout: Layout,
    /// True if Plimsoll checks the stamps in all blocks that it reads during the measurement.
    pub verify_reads: bool,
    /// Transfer sizes and their percentages, which add up to 100.
    pub sizes: Vec<SizeShare>,
    /// Transfer sizes of the writes, if they differ from the transfer sizes of the reads.
    /// Otherwise, the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<SizeShare>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Process that determines the start times of operations.
    pub arrival: Arrival,
    /// Method that makes writes durable.
    pub sync: SyncPolicy,
    /// Content of the blocks that the stream writes.
    pub content: Content,
    /// Files that the stream uses, or the part of the device that the stream uses.
    pub files: FileSet,
    /// Percentages of the kinds of metadata operations.
    pub metadata_mix: MetadataMix,
    /// Trace that the stream replays. The trace determines the offsets and the order of the
    /// operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSource>,
    /// Name of the event at which the stream starts. `None` if it starts at the beginning of the
    /// load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_event: Option<String>,
}

/// A transfer size, and the percentage of operations that have this size.
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
    /// Offsets in random order. Each pass accesses each block exactly once. The pass is divided
    /// among the clients: client `i` of `n` accesses every `n`-th block of the pass, starting with
    /// the `i`-th block.
    Permutation,
    /// Ascending offsets. Each client has its own position.
    Sequential,
    /// Ascending offsets. All clients share one position.
    SequentialShared,
    /// Offsets with a fixed distance between the starts of consecutive operations.
    Strided {
        /// Distance between the starting offsets of consecutive operations.
        stride_bytes: u64,
    },
    /// Random offsets with a Zipf distribution. Popular blocks are scattered over the working set.
    Zipf {
        /// Exponent of the distribution. If it is 0, the distribution is uniform.
        exponent: f64,
    },
    /// Random offsets, most of which are in the hot part of the working set. The distribution is
    /// uniform within the hot part and within the cold part.
    HotCold {
        /// Share of the working set that is hot.
        hot_space: f64,
        /// Share of the operations that access the hot part.
        hot_access: f64,
    },
    /// Random offsets. They have a normal distribution around the middle of the working set.
    Normal {
        /// Standard deviation of the offsets, as a share of the working set.
        deviation: f64,
    },
    /// Ascending offsets with gaps of random length. Each client has its own position.
    Skipping {
        /// Share of the working set that one pass accesses.
        density: f64,
    },
    /// The offsets of the operations in a trace.
    Trace,
}

impl Stream {
    /// Returns true if a run creates the data of this stream by writing it.
    #[must_use]
    pub fn writes_layout(&self) -> bool {
        matches!(self.layout, Layout::Written | Layout::Zeros)
    }

    /// Returns the largest number of operations per second that the stream can start, according to
    /// its rate and its think time. `None` if only the storage or a recording limits it.
    #[must_use]
    pub fn rate_max_per_s(&self) -> Option<f64> {
        if self.trace.is_some() {
            return None;
        }
        let places = f64::from(self.clients.max(1)) * f64::from(self.queue_depth.max(1));
        let thinking = (self.think_time_ns > 0).then(|| places * 1e9 / self.think_time_ns as f64);
        match self.arrival {
            Arrival::Constant { rate_per_s, .. }
            | Arrival::Poisson { rate_per_s, .. }
            | Arrival::Bursts { rate_per_s, .. } => Some(rate_per_s),
            Arrival::Closed { rate_cap_per_s: Some(cap) } => {
                Some(thinking.map_or(cap, |thinking| cap.min(thinking)))
            }
            Arrival::Closed { rate_cap_per_s: None } => thinking,
            Arrival::Recorded { .. } => None,
        }
    }

    /// Returns the number of operations that all clients of the stream together keep in flight in a
    /// closed loop.
    pub fn outstanding(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.queue_depth)
    }
}

impl Pattern {
    /// Names of the access patterns in a plan file. A trace has no name here, because traces have
    /// their own section.
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

    /// Returns the name of the pattern in a plan file.
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

    /// Returns true if each offset depends on the previous offset.
    #[must_use]
    pub const fn is_sequential(&self) -> bool {
        matches!(self, Self::Sequential | Self::SequentialShared)
    }
}

/// Process that determines the start times of operations. The rates apply to the whole stream.
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
        /// Number of operations that start per second.
        rate_per_s: f64,
        /// Time over which the rate rises from 0.
        ramp_ns: u64,
    },
    /// Open loop: the times between the starts of operations are exponentially distributed.
    Poisson {
        /// Mean number of operations that start per second.
        rate_per_s: f64,
        /// Time over which the rate rises from 0.
        ramp_ns: u64,
    },
    /// Open loop: bursts alternate with pauses. Within a burst, operations start at random
    /// (Poisson) times.
    Bursts {
        /// Mean number of operations that start per second during a burst.
        rate_per_s: f64,
        /// Length of a burst.
        on_ns: u64,
        /// Pause between bursts.
        off_ns: u64,
    },
    /// Open loop: operations start at recorded times.
    Recorded {
        /// Path of a file. Each line contains a start time, in nanoseconds since the start of the
        /// load.
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

/// Method that makes writes durable, and how often it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncPolicy {
    /// Method that makes writes durable.
    pub kind: SyncKind,
    /// Number of writes after which a client syncs (`fsync` and `fdatasync`).
    pub every_writes: u32,
}

/// Content of the blocks that are written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// Ratio by which the content can be compressed, N to 1. Content with the ratio 1 is
    /// incompressible.
    pub compressibility: f64,
    /// Share of the 4 KiB blocks that are duplicates.
    pub duplicate_share: f64,
    /// True if each block contains a stamp, by which Plimsoll detects damaged data.
    pub stamps: bool,
}

/// Files of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// Number of shares (directories or NFS exports) over which the files are distributed.
    pub shares: u32,
    /// Number of files in each share.
    pub files_per_share: u32,
    /// Size of each file in bytes, or `None` if the stream uses a whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Offset at which the working set starts in each file or on the device.
    pub offset_bytes: u64,
    /// Total size of the working set over all files, or `None` if the working set contains all
    /// data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Number of subdirectory levels in each share. If the number is 0, all files of a share are in
    /// one directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_levels: u32,
    /// Number of subdirectories in each directory, or 0 if there are no subdirectories.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_fan_out: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FileSet {
    /// Returns how many directories of each share contain files. The number is 1 if a share has no
    /// subdirectories.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        self.tree_fan_out.max(1).saturating_pow(self.tree_levels)
    }

    /// Returns the total number of files.
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.shares) * u64::from(self.files_per_share)
    }

    /// Returns the total size of all files, or `None` if the stream uses a whole device.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.file_size_bytes.map(|size| size.saturating_mul(self.files()))
    }
}

/// Percentages of the kinds of metadata operations. They add up to 100, or to 0 if there are no
/// metadata operations.
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
    /// Returns the total number of operations that the clients of all streams keep in flight in
    /// closed loops.
    pub fn outstanding(&self) -> u64 {
        self.streams.iter().map(Stream::outstanding).sum()
    }

    /// Returns true if at least one point of the sweep reads data.
    #[must_use]
    pub fn reads(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p > 0.0)
    }

    /// Returns true if at least one point of the sweep writes data.
    #[must_use]
    pub fn writes(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p < 100.0)
    }
}
