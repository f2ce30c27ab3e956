//! What a backend is opened from.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use plimsoll_sys::file::DirectMode as Direct;

use crate::open_target::HeldTarget;

/// Which form of queue to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// io_uring where it works, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// `preadv2`/`pwritev2`, inline at depth 1.
    Threads,
}

/// A file of the table.
#[derive(Debug)]
pub enum FileSource {
    /// A file to open.
    Path {
        /// Where.
        path: PathBuf,
        /// For writing too.
        write: bool,
        /// Make it where it is missing.
        create: bool,
        /// Grow it to this size (reserved where the file system can) where it is shorter and writable;
        /// 0 leaves it alone.
        size_bytes: u64,
    },
    /// An open descriptor.
    Fd {
        /// Its path, for messages.
        path: PathBuf,
        /// The descriptor.
        fd: OwnedFd,
        /// Whether it was opened with `O_DIRECT`.
        direct: bool,
    },
}

impl FileSource {
    /// An existing file, for reading and writing, at its present size.
    #[must_use]
    pub fn existing(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: true, create: false, size_bytes: 0 }
    }

    /// An existing file, for reading only.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), write: false, create: false, size_bytes: 0 }
    }

    /// A file that is made where it is missing and has at least `size_bytes`.
    #[must_use]
    pub fn sized(path: impl Into<PathBuf>, size_bytes: u64) -> Self {
        Self::Path { path: path.into(), write: true, create: true, size_bytes }
    }
}

/// What [`super::Backend::open`] makes a backend from.
#[derive(Debug, Default)]
pub struct BackendConfig {
    /// The file table, in the order that `Io::file` counts.
    pub files: Vec<FileSource>,
    /// Directories or device that the files are opened beneath. The default opens them by their paths.
    pub held: HeldTarget,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// Most operations in flight.
    pub depth: u32,
    /// Which form of queue.
    pub prefer: Prefer,
    /// Whether to bypass the page cache.
    pub direct: Direct,
    /// Open with `O_DSYNC`: each write completes on stable storage.
    pub dsync: bool,
    /// Fault the arena in before the first operation.
    pub populate: bool,
    /// Poll the device for completions (`IOPOLL`; only devices that can).
    pub poll_completions: bool,
    /// Let a kernel thread fetch submissions (`SQPOLL`; costs a core).
    pub poll_submissions: bool,
    /// Longest time that a wait polls for completions before it sleeps; 0: it sleeps at once.
    pub spin_ns: u64,
    /// What operations on names and attributes go to. They are made by threads, and with them all others:
    /// the kernel's ring has no listing, no `faccessat` and no `fchmod`.
    pub names: Option<Names>,
}

/// Directories that operations on names and attributes go to; the data files are those of the file table.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The run's own directories: everything lies below them.
    pub roots: Vec<PathBuf>,
    /// Directories of small files, `per_share` of them for each share, one share after the other.
    pub small: Vec<PathBuf>,
    /// See [`Names::small`].
    pub per_share: u32,
}
