//! The I/O matrix as resolved: streams of like clients, and the axes that a sweep varies.

use serde::{Deserialize, Serialize};

use super::trace::TraceSource;
use super::words::{DirectIo, Layout, SyncKind};

/// Streams that run at the same time, and the points of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// What a sweep varies in the first stream. With several streams each axis has one value.
    pub axes: MatrixAxes,
    /// The streams; the first carries the first value of each axis.
    pub streams: Vec<Stream>,
    /// The foreign job that the streams come from, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// The values that a sweep takes. Patterns vary slowest, then depths, sizes, and reads fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixAxes {
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Queue depths per client.
    pub queue_depths: Vec<u32>,
    /// Sizes of one transfer. Empty when the stream mixes sizes.
    pub sizes_bytes: Vec<u64>,
    /// Read shares in percent.
    pub read_percents: Vec<f64>,
}

/// A job made elsewhere that was turned into streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The job file as the plan names it.
    pub job: String,
    /// What could not be carried over, and what it would have meant.
    pub notes: Vec<String>,
}

/// Like clients with the same mix of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Name, unique in the plan.
    pub name: String,
    /// Clients in all; client `i` works on share `i mod shares`.
    pub clients: u32,
    /// Operations that each client keeps outstanding (closed loop).
    pub queue_depth: u32,
    /// True when a client waits for its whole batch of `queue_depth` before the next.
    pub batch: bool,
    /// Read share of the data operations, in percent.
    pub read_percent: f64,
    /// Share of metadata operations in all operations, in percent.
    pub metadata_percent: f64,
    /// Boundary that offsets are multiples of; 0: the size of the transfer.
    pub align_bytes: u64,
    /// Pause of a client between operations (closed loop).
    pub think_time_ns: u64,
    /// Direct or buffered.
    pub direct: DirectIo,
    /// What the files hold before the first operation.
    pub layout: Layout,
    /// Whether the stamps of what is read are checked while measuring.
    pub verify_reads: bool,
    /// Sizes of transfers with their shares in percent, which add up to 100.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes, where they differ from those of reads; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<SizeShare>,
    /// Where operations go.
    pub pattern: Pattern,
    /// When operations start.
    pub arrival: Arrival,
    /// When writes are made durable.
    pub sync: SyncPolicy,
    /// What blocks hold.
    pub content: Content,
    /// The files (or the part of a device).
    pub files: FileSet,
    /// Shares of the metadata operations.
    pub metadata_mix: MetadataMix,
    /// The trace whose operations these are, at its places and in its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSource>,
}

/// A size of transfers and its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeShare {
    /// Bytes of one transfer.
    pub size_bytes: u64,
    /// Share in percent.
    pub share_percent: f64,
}

/// Where operations go within the working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pattern {
    /// Uniform.
    Random,
    /// Each block exactly once per pass, in random order. The clients share the pass: client `i` of
    /// `n` takes every `n`-th place of it, from the `i`-th.
    Permutation,
    /// One after the other; each client from a place of its own.
    Sequential,
    /// One after the other, all clients from one cursor.
    SequentialShared,
    /// At a fixed distance.
    Strided {
        /// Distance from one start to the next.
        stride_bytes: u64,
    },
    /// Block ranks by Zipf's law, scattered over the working set.
    Zipf {
        /// The exponent: 0 is uniform.
        exponent: f64,
    },
    /// A hot part takes most operations; uniform within the parts.
    HotCold {
        /// Share of the space that is hot.
        hot_space: f64,
        /// Share of the operations that go there.
        hot_access: f64,
    },
    /// Normally distributed around the middle.
    Normal {
        /// Standard deviation as a share of the working set.
        deviation: f64,
    },
    /// Onwards, each client from a place of its own, with skips of random length.
    Skipping {
        /// Share of the space that one pass touches.
        density: f64,
    },
    /// Where the operations of a trace go.
    Trace,
}

impl Pattern {
    /// The words in a plan; a trace has a section of its own.
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

    /// The word in a plan.
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

    /// True where an operation's place follows from the one before it.
    #[must_use]
    pub const fn is_sequential(&self) -> bool {
        matches!(self, Self::Sequential | Self::SequentialShared)
    }
}

/// When operations start. Rates are those of the whole stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrival {
    /// Closed loop: when an earlier one has completed.
    Closed {
        /// Never faster than this.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate_cap_per_s: Option<f64>,
    },
    /// Open loop, evenly spaced.
    Constant {
        /// Operations per second.
        rate_per_s: f64,
        /// Time over which the rate climbs from 0.
        ramp_ns: u64,
    },
    /// Open loop, exponential gaps.
    Poisson {
        /// Operations per second on average.
        rate_per_s: f64,
        /// Time over which the rate climbs from 0.
        ramp_ns: u64,
    },
    /// Open loop, Poisson while on, nothing while off.
    Bursts {
        /// Operations per second while on.
        rate_per_s: f64,
        /// Length of a burst.
        on_ns: u64,
        /// Pause between bursts.
        off_ns: u64,
    },
    /// Open loop at recorded times.
    Recorded {
        /// File with one start per line, in nanoseconds from the beginning.
        file: String,
    },
}

impl Arrival {
    /// True where an operation starts whether or not earlier ones have completed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }
}

/// When writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncPolicy {
    /// By which call.
    pub kind: SyncKind,
    /// After how many writes of a client (`fsync` and `fdatasync`).
    pub every_writes: u32,
}

/// What blocks hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// How many to one it compresses; 1 is incompressible.
    pub compressibility: f64,
    /// Share of 4 KiB blocks that are copies of others.
    pub duplicate_share: f64,
    /// Whether each block carries a stamp from which damage is told.
    pub stamps: bool,
}

/// The files that a stream works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// Directories or exports that the files are dealt to.
    pub shares: u32,
    /// Files in each of them.
    pub files_per_share: u32,
    /// Size of a file; absent for a device, which is taken whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Where in each file (or the device) the working set begins.
    pub offset_bytes: u64,
    /// Bytes that operations go to, all files together; absent when they go to everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Levels of directories below each share; 0: a share's files lie in one directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_levels: u32,
    /// Directories in each directory of such a tree; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tree_fan_out: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FileSet {
    /// Directories in the last level of each share's tree; 1 without a tree.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        self.tree_fan_out.max(1).saturating_pow(self.tree_levels)
    }

    /// Files in all.
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.shares) * u64::from(self.files_per_share)
    }

    /// Bytes of all files; `None` for a device that is taken whole.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.file_size_bytes.map(|size| size.saturating_mul(self.files()))
    }
}

/// Shares of the metadata operations, in percent; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetadataMix {
    /// Attributes read.
    pub getattr_percent: f64,
    /// Names looked up.
    pub lookup_percent: f64,
    /// Permissions asked.
    pub access_percent: f64,
    /// Directories listed.
    pub readdir_percent: f64,
    /// Small files made.
    pub create_percent: f64,
    /// Such files removed.
    pub remove_percent: f64,
    /// Such files renamed.
    pub rename_percent: f64,
    /// Attributes set.
    pub setattr_percent: f64,
}

impl Matrix {
    /// True when any point reads data.
    #[must_use]
    pub fn reads(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p > 0.0)
    }

    /// True when any point writes data.
    #[must_use]
    pub fn writes(&self) -> bool {
        let swept = self.axes.read_percents.iter();
        swept.chain(self.streams.iter().skip(1).map(|s| &s.read_percent)).any(|p| *p < 100.0)
    }
}
