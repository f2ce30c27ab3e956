//! The target's files, and the file systems and loop devices beneath.

use serde::{Deserialize, Serialize};

/// How much of the target's files the host held in its page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCache {
    /// Bytes of the files that were asked about.
    pub files_bytes: Option<u64>,
    /// Resident before the measured phase.
    pub resident_bytes_before: Option<u64>,
    /// Resident after it.
    pub resident_bytes_after: Option<u64>,
    /// Whether the system's caches were dropped before the measurement, where asked.
    pub system_dropped: Option<bool>,
}

/// Extents of the target's files (`FIEMAP`, or `SEEK_HOLE` where that is missing).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Apparent size.
    pub size_bytes: u64,
    /// Holes.
    pub hole_bytes: u64,
    /// Allocated, never written; `None` where only holes are told.
    pub unwritten_bytes: Option<u64>,
    /// Extents in all.
    pub extents: Option<u64>,
    /// Shared with other files or snapshots.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// Stored compressed or encrypted.
    #[serde(default)]
    pub encoded_bytes: Option<u64>,
    /// Allocated (`st_blocks`). It is blind to what was never written.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// Hole and unwritten bytes within the working set; `None` where that is not told apart.
    #[serde(default)]
    pub empty_in_working_set_bytes: Option<u64>,
}

/// What a file system beneath is set to do with data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// The path that lies on it.
    pub path: String,
    /// Such as `btrfs`.
    pub kind: Option<String>,
    /// Compression that applies to the target's files, such as `zstd:3`; empty: none; `None`: not
    /// known.
    pub compression: Option<String>,
    /// Whether data carries checksums of the file system.
    pub checksums: Option<bool>,
    /// What direct I/O on a file of the target has to be aligned to (`statx`, Linux 6.1); 0: the file
    /// system takes the flag and buffers all the same; `None`: it does not say.
    #[serde(default)]
    pub direct_align_bytes: Option<u32>,
    /// Whether the file system lies in memory (tmpfs, ramfs, a RAM disk).
    pub memory: Option<bool>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Free when the measurement began.
    pub free_bytes: Option<u64>,
}

/// The file that a loop device rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// The file.
    pub path: String,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// How much of it the page cache held when the measurement began.
    pub resident_bytes_before: Option<u64>,
    /// And when it ended.
    pub resident_bytes_after: Option<u64>,
    /// Dirty or under write-back when it began; `None` before Linux 6.5.
    pub dirty_bytes_before: Option<u64>,
    /// And when it ended.
    pub dirty_bytes_after: Option<u64>,
    /// What direct I/O on it has to be aligned to, as [`FileSystem::direct_align_bytes`].
    pub direct_align_bytes: Option<u32>,
}
