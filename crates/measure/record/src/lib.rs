//! Recording of runs, shared by all drivers: threads and simulations record into the same sums and
//! histograms, which become one recording.
//!
//! - [`recording`]: evidence of a running plan. [`progress`]: progress reports.
//! - [`recorder`], [`late`], `tally`: records of a thread of a stateful workload.
//! - [`cells`], [`histogram`]: records of a thread of streams. [`collect`]: records of all threads.
//!   [`scribe`]: conversion to evidence.
//! - [`generator`]: figures about the load generator.
//! - [`drain`]: timeouts at the end of a phase.
//!
//! # Where to change what
//!
//! - recording by a thread: `recorder.rs` (stateful workloads), `cells.rs` and `collect.rs`
//!   (streams), `recording.rs`
//! - common start of phases: `progress.rs` (`Watcher::begins_at`)
//! - records of a replay: `replay.rs`

pub mod cells;
pub mod collect;
pub mod drain;
pub mod durable;
pub mod generator;
pub mod histogram;
pub mod late;
pub mod progress;
pub mod recorder;
pub mod recording;
pub mod replay;
pub mod scribe;
mod tally;
