//! Report of a backend for the bundle: its queue, its settings and its files.

use serde::{Deserialize, Serialize};

/// Form of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// io_uring.
    Uring,
    /// Worker threads.
    Threads,
    /// System calls that the issuing thread itself makes (depth 1).
    Inline,
    /// NFS calls from the issuing thread.
    Nfs,
    /// S3 requests from the issuing thread.
    S3,
    /// No I/O at all.
    Null,
}

/// State of one open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    pub path: String,
    /// Size of the file when it was opened.
    pub size_bytes: u64,
    /// True if I/O bypasses the page cache.
    pub direct: bool,
    /// Reason for buffered I/O; `None` if I/O is direct.
    pub why_not_direct: Option<String>,
    /// True if the file system refused `O_DIRECT`, so that the automatic mode uses buffered I/O.
    pub direct_refused: bool,
    /// Alignment that direct buffers need, if the kernel reports it.
    pub direct_memory_align_bytes: Option<u32>,
    /// Alignment that direct offsets and sizes need, if the kernel reports it.
    pub direct_offset_align_bytes: Option<u32>,
    /// Reason why kernel workers will execute asynchronous operations on the file, if known. The
    /// processor time of the issuing thread does not include the time of these workers.
    pub punts_because: Option<String>,
}

/// Form of the queue, the reason for this form, and the settings of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendReport {
    /// Form of the queue.
    pub kind: BackendKind,
    /// Reason for this form.
    pub why: String,
    /// Maximum number of operations in flight.
    pub depth: u32,
    /// Number of the engine's own worker threads.
    pub worker_threads: u32,
    /// Options of the ring's set-up that the kernel accepted, with their names in the kernel's
    /// interface.
    pub ring_features: Vec<String>,
    /// Options of the ring's set-up that were refused, and the reasons. A refusal only reduces the
    /// speed.
    pub ring_refusals: Vec<String>,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// Bytes of the arena that are registered with the kernel.
    pub registered_bytes: u64,
    /// True if the kernel accepted the advice to use huge pages.
    pub huge_pages_advised: bool,
    /// Files, in the order of the file table.
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
