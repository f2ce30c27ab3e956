//! Configuration of a backend.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use plimsoll_sys::file::DirectMode as Direct;

use crate::open_target::HeldTarget;

/// Preferred form of queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// io_uring if it works, otherwise threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// Threads that call `preadv2` and `pwritev2`; at depth 1, the issuing thread makes the calls.
    Threads,
}

/// Source of a file in the file table.
#[derive(Debug)]
pub enum FileSource {
    /// File to open.
    Path {
        path: PathBuf,
        /// True to open the file for reading and writing.
        write: bool,
        /// True to create the file if it is missing.
        create: bool,
        /// Minimum size of a writable file. A shorter file is extended; its space is reserved if
        /// the file system supports this. 0 leaves the size unchanged.
        size_bytes: u64,
    },
    /// Open descriptor.
    Fd {
        /// Path of the file, for messages.
        path: PathBuf,
        /// Descriptor of the file.
        fd: OwnedFd,
        /// True if the file was opened with `O_DIRECT`.
        direct: bool,
    },
}

impl FileSource {
    /// Returns the source for an existing file, which is opened for reading and writing at its
    /// current size.
    #[must_use]
    pub fn existing(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: true, create: false, size_bytes: 0 }
    }

    /// Returns the source for an existing file, which is opened only for reading.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: false, create: false, size_bytes: 0 }
    }

    /// Returns the source for a file of at least `size_bytes`, which is created if it is missing.
    #[must_use]
    pub fn sized(path: impl Into<PathBuf>, size_bytes: u64) -> Self {
        Self::Path { path: path.into(), write: true, create: true, size_bytes }
    }
}

/// Configuration for [`super::Backend::open`].
#[derive(Debug, Default)]
pub struct BackendConfig {
    /// File table; `Io::file` is an index into it.
    pub files: Vec<FileSource>,
    /// Open directories or device that contain the files. By default, files are opened by their
    /// paths.
    pub held: HeldTarget,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// Maximum number of operations in flight.
    pub depth: u32,
    /// Preferred form of queue.
    pub prefer: Prefer,
    /// Direct I/O mode: whether to bypass the page cache.
    pub direct: Direct,
    /// True to open files with `O_DSYNC`: a write then completes when its data is on stable
    /// storage.
    pub dsync: bool,
    /// True if operations flush with `fsync` or `fdatasync`.
    pub flushes: bool,
    /// True to fault in the arena before the first operation.
    pub populate: bool,
    /// True to poll the device for completions (`IOPOLL`, which only some devices support).
    pub poll_completions: bool,
    /// True to let a kernel thread fetch submissions (`SQPOLL`; costs a core).
    pub poll_submissions: bool,
    /// Maximum time for which a wait polls for completions before it sleeps. With 0, it sleeps
    /// immediately.
    pub spin_ns: u64,
    /// Targets of operations on names and attributes. If set, threads execute all calls: io_uring
    /// has no directory listing, no `faccessat` and no `fchmod`.
    pub names: Option<Names>,
}

/// Directories for operations on names and attributes. The data files are in the file table.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The run's own directories, which contain the data files and the small files.
    pub roots: Vec<PathBuf>,
    /// Directories of small files, ordered by share: `per_share` directories for each share.
    pub small: Vec<PathBuf>,
    /// Number of small-file directories per share.
    pub per_share: u32,
}
