//! Imports results of other tools as [`ToolResult`](plimsoll_evidence::tool_result::ToolResult),
//! with the precision of the printed numbers. Nothing is added.
//!
//! A file's format is detected from its content, never from its name. Directories and archives
//! (tar, tar.gz, zip, single gzip files) are read as a study of many results. [`foreign`] creates
//! bundles of results with enough content to be judged as runs. Invalid input is rejected with a
//! message and never panics. [`fio_job`] converts fio jobs to plans.
//!
//! # Where to change what
//!
//! - fio JSON and tables as a bundle: `foreign`
//! - any other result format: a file for each tool, detection in `detect.rs`, assembly in
//!   `study.rs`, a row in `docs/audit.md`, a sample in `tests/formats/garbage.rs`
//! - a trace format: a file in `trace`
//! - a format that is refused with a hint: `unread.rs`
//! - stages of a fio job: `fio_job.rs`

pub mod detect;
pub mod diskspd;
pub mod elbencho;
pub mod elbencho_live;
pub mod fio;
pub mod fio_job;
pub mod foreign;
pub mod io500;
pub mod ioping;
pub mod ior;
pub mod iozone;
pub mod jetstress;
pub mod json;
pub mod kv_cache;
pub mod mdtest;
pub mod mlperf;
pub mod number;
pub mod parts;
pub mod pgbench_log;
pub mod runs;
pub mod study;
pub mod sysbench;
pub mod table;
pub mod terminal;
pub mod text;
pub mod trace;
pub mod unread;
pub mod vdbench;
pub mod vector_db;
pub mod walk;
pub mod warp;
pub mod warp_csv;
pub mod warp_text;
pub mod yabs;

pub use detect::Format;
pub use study::{Study, read, read_text};

/// Reason why a file cannot be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}: {says}")]
pub struct ImportError {
    /// Path of the file.
    pub file: String,
    /// Reason in words.
    pub says: String,
}
