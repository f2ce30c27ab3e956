//! Report of a backend for the bundle. It describes the queue, its settings and its files.

use serde::{Deserialize, Serialize};

/// Form of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// io_uring.
    Uring,
    /// Worker threads.
    Threads,
    /// The issuing thread itself makes the system calls (depth 1).
    Inline,
    /// The issuing thread sends NFS calls.
    Nfs,
    /// The issuing thread sends S3 requests.
    S3,
    /// No I/O is issued.
    Null,
}

/// How one file was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    pub path: String,
    /// Size of the file in bytes, at the time when it was opened.
    pub size_bytes: u64,
    /// True if I/O bypasses the page cache.
    pub direct: bool,
    /// Reason why I/O to the file is buffered; `None` if the I/O is direct.
    pub why_not_direct: Option<String>,
    /// True if the file system refused `O_DIRECT`. The automatic mode then uses buffered I/O.
    pub direct_refused: bool,
    /// Alignment that the file requires of buffers for direct I/O, in bytes; `None` if the kernel
    /// does not report it.
    pub direct_memory_align_bytes: Option<u32>,
    /// Alignment that the file requires of offsets and sizes for direct I/O, in bytes; `None` if
    /// the kernel does not report it.
    pub direct_offset_align_bytes: Option<u32>,
    /// Reason why kernel workers will execute the asynchronous operations on the file; `None` if no
    /// such reason is known. The processor time of the issuing thread does not include the
    /// processor time of these workers.
    pub punts_because: Option<String>,
}

/// Form and settings of a queue, with the reason why this form was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendReport {
    pub kind: BackendKind,
    /// Reason why this form of queue was chosen.
    pub why: String,
    /// Maximum number of operations that the queue can have in flight.
    pub depth: u32,
    /// Number of worker threads that belong to the engine itself.
    pub worker_threads: u32,
    /// Options for the set-up of the ring that the kernel accepted. Each option has its name from
    /// the kernel's interface.
    pub ring_features: Vec<String>,
    /// Options for the set-up of the ring that the kernel refused, with the reasons. Without these
    /// options, the ring works but is slower.
    pub ring_refusals: Vec<String>,
    /// Size of the arena in bytes.
    pub arena_bytes: u64,
    /// Number of bytes of the arena that are registered with the kernel.
    pub registered_bytes: u64,
    /// True if the kernel accepted the request (`madvise`) to use huge pages for the arena.
    pub huge_pages_advised: bool,
    /// Reports of the files, in the order of the file table.
    pub files: Vec<FileReport>,
}

impl BackendReport {
    /// Creates the report of a queue that has no files on this host.
    #[must_use]
    pub fn without_files(kind: BackendKind, why: &str, depth: u32, arena_bytes: u64) -> Self {
        Self {
            kind,
            why: why.to_owned(),
            depth,
            worker_threads: 0,
            ring_features: Vec::new(),
            ring_refusals: Vec::new(),
            arena_bytes,
            registered_bytes: 0,
            huge_pages_advised: false,
            files: Vec::new(),
        }
    }
}
