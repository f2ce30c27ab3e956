//! What a backend says about itself, for the bundle.

use serde::{Deserialize, Serialize};

/// The form of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// io_uring.
    Uring,
    /// Worker threads.
    Threads,
    /// The issuing thread makes the calls itself (depth 1).
    Inline,
    /// NFS calls from the issuing thread.
    Nfs,
    /// S3 requests from the issuing thread.
    S3,
    /// No I/O at all.
    Null,
}

/// How one file is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Where it is.
    pub path: String,
    /// Its size when it was opened.
    pub size_bytes: u64,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// Why not, where it isn't.
    pub why_not_direct: Option<String>,
    /// Alignment that direct buffers need, where the kernel tells.
    pub direct_memory_align_bytes: Option<u32>,
    /// Alignment that direct offsets and sizes need, where the kernel tells.
    pub direct_offset_align_bytes: Option<u32>,
    /// Why the kernel will carry asynchronous operations on it with worker threads, where it is known
    /// to: their processor time isn't the issuing thread's.
    pub punts_because: Option<String>,
}

/// Which form of queue was taken, why, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendReport {
    /// The form.
    pub kind: BackendKind,
    /// Why this form.
    pub why: String,
    /// Most operations in flight.
    pub depth: u32,
    /// Worker threads of the engine itself.
    pub worker_threads: u32,
    /// What of the ring's set-up was taken, by its name in the kernel's interface.
    pub ring_features: Vec<String>,
    /// What of it was refused, and why: it costs speed only.
    pub ring_refusals: Vec<String>,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// How much of it is registered with the kernel.
    pub registered_bytes: u64,
    /// Whether the kernel took the advice to use huge pages.
    pub huge_pages_advised: bool,
    /// The files, in the order of the table.
    pub files: Vec<FileReport>,
}

impl BackendReport {
    /// Of a queue that has no files of this host.
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
