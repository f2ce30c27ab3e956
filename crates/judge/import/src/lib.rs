//! Imports results of other tools as [`ToolResult`](plimsoll_evidence::tool_result::ToolResult).
//! Each figure has the precision of the printed number. The import adds no figures.
//!
//! The format of a file is detected from its content, never from its name. A directory or archive
//! (tar, tar.gz, zip, single gzip files) is read as a study of many results. [`foreign`] creates
//! bundles from results that contain enough figures to be judged as runs. Invalid input is rejected
//! with a message and never causes a panic. [`fio_job`] converts fio jobs to plans.
//!
//! # Where to change what
//!
//! - `foreign` converts fio's JSON and tables to bundles.
//! - To add a result format: create a file for the tool, and add it to `detect.rs` (detection),
//!   `study.rs` (assembly), `docs/audit.md` (a row) and `tests/formats/garbage.rs` (a sample).
//! - To add a trace format: create a file in `trace`.
//! - Formats that are rejected with a hint are in `unread.rs`.
//! - The stages of a fio job are in `fio_job.rs`.

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
    /// Reason, as text.
    pub says: String,
}
