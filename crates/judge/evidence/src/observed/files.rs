//! Files of the target, and the underlying file systems and loop devices.

use serde::{Deserialize, Serialize};

/// Parts of the target's files that were in the host's page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCache {
    /// Total size of the examined files in bytes.
    pub files_bytes: Option<u64>,
    /// Bytes in the page cache before the measured phase.
    pub resident_bytes_before: Option<u64>,
    /// Bytes in the page cache after the measured phase.
    pub resident_bytes_after: Option<u64>,
    /// True if the system's caches were dropped before the measurement; `None` if the plan did not
    /// request it.
    pub system_dropped: Option<bool>,
}

/// Extents of the target's files (`FIEMAP`, or `SEEK_HOLE` if the file system lacks it).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Apparent size in bytes.
    pub size_bytes: u64,
    /// Bytes in holes.
    pub hole_bytes: u64,
    /// Bytes that are allocated but were never written; `None` if only holes are known.
    pub unwritten_bytes: Option<u64>,
    /// Number of extents.
    pub extents: Option<u64>,
    /// Bytes that are shared with other files or snapshots.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// Bytes that the file system stores compressed or encrypted.
    #[serde(default)]
    pub encoded_bytes: Option<u64>,
    /// Allocated bytes (`st_blocks`). They include extents that were never written.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// Bytes in holes and unwritten extents within the working set; `None` if unknown.
    #[serde(default)]
    pub empty_in_working_set_bytes: Option<u64>,
}

/// Data settings of an underlying file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Path on the file system.
    pub path: String,
    /// Type, such as `btrfs`.
    pub kind: Option<String>,
    /// Compression of the target's files, such as `zstd:3`; empty if the files are not compressed;
    /// `None` if unknown.
    pub compression: Option<String>,
    /// True if the file system checksums data.
    pub checksums: Option<bool>,
    /// Alignment that direct I/O requires on a file of the target (`statx`, Linux 6.1). 0 if the
    /// file system accepts the flag but uses buffered I/O anyway; `None` if unknown.
    #[serde(default)]
    pub direct_align_bytes: Option<u32>,
    /// True if the file system is in memory (tmpfs, ramfs, a RAM disk).
    pub memory: Option<bool>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Free bytes at the start of the measurement.
    pub free_bytes: Option<u64>,
}

/// Backing file of a loop device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// Path of the file.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes in the page cache at the start of the measurement.
    pub resident_bytes_before: Option<u64>,
    /// Bytes in the page cache at the end of the measurement.
    pub resident_bytes_after: Option<u64>,
    /// Bytes dirty or under write-back at the start of the measurement; `None` before Linux 6.5.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes dirty or under write-back at the end of the measurement.
    pub dirty_bytes_after: Option<u64>,
    /// Alignment that direct I/O requires, as in [`FileSystem::direct_align_bytes`].
    pub direct_align_bytes: Option<u32>,
}
