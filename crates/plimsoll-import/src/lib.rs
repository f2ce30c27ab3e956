//! Results of other tools, read into [`ToolResult`](plimsoll_evidence::tool_result::ToolResult): what a file
//! says is taken over with the precision that it is printed in, and nothing is added.
//!
//! A file's form is told from its content and never from its name. Directories and archives (tar,
//! tar.gz, zip, single gzip files) are read as a study of many results. [`foreign`] makes a bundle of those that say
//! enough to be judged as a run. What is garbage is refused with
//! a sentence; nothing panics. [`fio_job`] makes plans of the jobs of fio.
//!
//! # Where to change what
//!
//! - fio JSON and tables as a bundle: `foreign`
//! - any other result format: one file per tool, detection in `detect.rs`, assembly in `study.rs`,
//!   a row in `docs/audit.md`, a sample in `tests/garbage.rs`
//! - a trace format: a file in `trace`
//! - stages of a fio job: `fio_job.rs`

pub mod detect;
pub mod diskspd;
pub mod elbencho;
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
pub mod vdbench;
pub mod vector_db;
pub mod walk;
pub mod warp;
pub mod warp_csv;
pub mod warp_text;

pub use detect::Format;
pub use study::{Study, read, read_text};

/// A file that cannot be read, and why.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}: {says}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub says: String,
}
