//! Configuration of a backend.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use plimsoll_sys::file::DirectMode as Direct;

use crate::open_target::HeldTarget;

/// Form of queue that the backend uses if possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Uses io_uring if it works, and otherwise threads.
    #[default]
    Auto,
    /// Uses io_uring, or fails if io_uring is unavailable.
    Uring,
    /// Uses threads that call `preadv2` and `pwritev2`. At depth 1, the issuing thread makes these
    /// calls.
    Threads,
}

/// How the backend obtains a file of the file table.
#[derive(Debug)]
pub enum FileSource {
    /// The backend opens a file by its path.
    Path {
        path: PathBuf,
        /// True to open the file for reading and writing; false to open it only for reading.
        write: bool,
        /// True to create the file if it is missing.
        create: bool,
        /// Minimum size of a writable file. A shorter file is extended, and its disk space is
        /// reserved if the file system supports this. With 0, the size does not change.
        size_bytes: u64,
    },
    /// Open descriptor.
    Fd {
        /// Path of the file, which is only used in messages.
        path: PathBuf,
        fd: OwnedFd,
        /// True if the file was opened with `O_DIRECT`.
        direct: bool,
    },
}

impl FileSource {
    /// Returns the source for a file that exists. The file is opened for reading and writing, and
    /// its size does not change.
    #[must_use]
    pub fn existing(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: true, create: false, size_bytes: 0 }
    }

    /// Returns the source for a file that exists. The file is opened only for reading.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: false, create: false, size_bytes: 0 }
    }

    /// Returns the source for a file of at least `size_bytes`. The file is created if it is
    /// missing.
    #[must_use]
    pub fn sized(path: impl Into<PathBuf>, size_bytes: u64) -> Self {
        Self::Path { path: path.into(), write: true, create: true, size_bytes }
    }
}

/// Settings with which [`super::Backend::open`] opens a backend.
#[derive(Debug, Default)]
pub struct BackendConfig {
    /// Files that the operations use. `Io::file` is an index into this table.
    pub files: Vec<FileSource>,
    /// Open handles of the directories or of the device in which the files are. By default, files
    /// are opened by their paths.
    pub held: HeldTarget,
    /// Size of the arena in bytes.
    pub arena_bytes: u64,
    /// Maximum number of operations that the backend can have in flight.
    pub depth: u32,
    /// Form of queue that the backend uses if possible.
    pub prefer: Prefer,
    /// Direct I/O mode, which determines whether I/O bypasses the page cache.
    pub direct: Direct,
    /// True to open files with `O_DSYNC`. A write then completes when its data is on stable
    /// storage.
    pub dsync: bool,
    /// True if some operations are flushes with `fsync` or `fdatasync`.
    pub flushes: bool,
    /// True to touch each page of the arena before the first operation, so that operations cause no
    /// page faults.
    pub populate: bool,
    /// True to poll the device for completions (`IOPOLL`). Only some devices support this.
    pub poll_completions: bool,
    /// True to let a kernel thread fetch submissions (`SQPOLL`). This thread uses a whole CPU.
    pub poll_submissions: bool,
    /// Maximum time for which a wait polls for completions before it sleeps. With 0, a wait sleeps
    /// immediately.
    pub spin_ns: u64,
    /// Directories in which operations on names and attributes work. If this field is set, threads
    /// execute all calls, because io_uring has no directory listing, no `faccessat` and no
    /// `fchmod`.
    pub names: Option<Names>,
}

/// Directories in which operations on names and attributes work. The data files themselves are in
/// the file table.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Directories that belong to the run. They contain the data files and the small files.
    pub roots: Vec<PathBuf>,
    /// Directories of the small files. There are `per_share` directories for each share, and they
    /// are sorted by share.
    pub small: Vec<PathBuf>,
    /// Number of small-file directories that each share has.
    pub per_share: u32,
}
