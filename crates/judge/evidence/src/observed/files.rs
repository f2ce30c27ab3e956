//! Files of the target, and the underlying file systems and loop devices.

use serde::{Deserialize, Serialize};

/// How much of the target's files was in the host's page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCache {
    /// Total size of the examined files in bytes.
    pub files_bytes: Option<u64>,
    /// Bytes of these files in the page cache before the measured phase.
    pub resident_bytes_before: Option<u64>,
    /// Bytes of these files in the page cache after the measured phase.
    pub resident_bytes_after: Option<u64>,
    /// True if the host's caches were dropped before the measurement; `None` if the plan did not
    /// request this.
    pub system_dropped: Option<bool>,
}

/// Extents of the target's files (from `FIEMAP`, or from `SEEK_HOLE` if the file system does not
/// support `FIEMAP`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Apparent size in bytes.
    pub size_bytes: u64,
    /// Number of bytes in holes of the files.
    pub hole_bytes: u64,
    /// Bytes that are allocated but were never written; `None` if only holes are known.
    pub unwritten_bytes: Option<u64>,
    /// Number of extents.
    pub extents: Option<u64>,
    /// Number of bytes that the files share with other files or snapshots.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// Bytes that the file system stores compressed or encrypted.
    #[serde(default)]
    pub encoded_bytes: Option<u64>,
    /// Allocated bytes (`st_blocks`). They include extents that were never written.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// Bytes of the working set that are in holes or unwritten extents; `None` if unknown.
    #[serde(default)]
    pub empty_in_working_set_bytes: Option<u64>,
}

/// Settings of an underlying file system that affect data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Path on the file system.
    pub path: String,
    /// Type of the file system, such as `btrfs`.
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
    /// Bytes of the file that were in the page cache at the start of the measurement.
    pub resident_bytes_before: Option<u64>,
    /// Bytes of the file that were in the page cache at the end of the measurement.
    pub resident_bytes_after: Option<u64>,
    /// Bytes that were dirty or under write-back at the start of the measurement; `None` before
    /// Linux 6.5.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes that were dirty or under write-back at the end of the measurement.
    pub dirty_bytes_after: Option<u64>,
    /// Alignment that direct I/O requires, as in [`FileSystem::direct_align_bytes`].
    pub direct_align_bytes: Option<u32>,
}
