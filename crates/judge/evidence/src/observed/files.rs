//! Files of the target, and their underlying file systems and loop devices.

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
    /// request that they be dropped.
    pub system_dropped: Option<bool>,
}

/// Extents of the target's files (from `FIEMAP`, or from `SEEK_HOLE` if the file system does not
/// support `FIEMAP`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Apparent size of the files in bytes.
    pub size_bytes: u64,
    /// Number of bytes in holes of the files.
    pub hole_bytes: u64,
    /// Number of bytes that are allocated but were never written; `None` if only the holes are
    /// known.
    pub unwritten_bytes: Option<u64>,
    /// Number of extents.
    pub extents: Option<u64>,
    /// Number of bytes that the files share with other files or snapshots.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// Number of bytes that the file system stores in compressed or encrypted form.
    #[serde(default)]
    pub encoded_bytes: Option<u64>,
    /// Number of allocated bytes (`st_blocks`). It includes extents that were never written.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// Number of bytes of the working set that are in holes or in unwritten extents; `None` if
    /// unknown.
    #[serde(default)]
    pub empty_in_working_set_bytes: Option<u64>,
}

/// Settings of an underlying file system that affect how it stores data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Path of the target on the file system.
    pub path: String,
    /// Type of the file system, such as `btrfs`.
    pub kind: Option<String>,
    /// Compression method of the target's files, such as `zstd:3`. The text is empty if the files
    /// are not compressed. `None` if unknown.
    pub compression: Option<String>,
    /// True if the file system protects data by checksums.
    pub checksums: Option<bool>,
    /// Alignment that a file of the target requires for direct I/O (`statx`, Linux 6.1). 0 if the
    /// file system accepts `O_DIRECT` but uses buffered I/O nevertheless; `None` if unknown.
    #[serde(default)]
    pub direct_align_bytes: Option<u32>,
    /// True if the file system is in memory (tmpfs, ramfs, a RAM disk).
    pub memory: Option<bool>,
    /// Size of the file system in bytes.
    pub size_bytes: Option<u64>,
    /// Free bytes of the file system at the start of the measurement.
    pub free_bytes: Option<u64>,
}

/// Backing file of a loop device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// Path of the backing file.
    pub path: String,
    /// Size of the backing file in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes of the file that were in the page cache at the start of the measurement.
    pub resident_bytes_before: Option<u64>,
    /// Bytes of the file that were in the page cache at the end of the measurement.
    pub resident_bytes_after: Option<u64>,
    /// Bytes of the file that were dirty or under write-back at the start of the measurement;
    /// `None` before Linux 6.5.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes of the file that were dirty or under write-back at the end of the measurement.
    pub dirty_bytes_after: Option<u64>,
    /// Alignment that the file requires for direct I/O, as in [`FileSystem::direct_align_bytes`].
    pub direct_align_bytes: Option<u32>,
}
