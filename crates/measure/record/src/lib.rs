//! Recording of runs, shared by all drivers: threads and simulations record into the same sums and
//! histograms, which become one recording.
//!
//! - [`recording`]: evidence of a running plan. [`progress`]: progress reports.
//! - [`totals`], [`histogram`]: exact sums and histograms. [`snapshot`]: both of one thread in one
//!   interval, for every driver.
//! - [`recorder`]: intervals of a thread of a stateful workload. [`collect`]: intervals of all
//!   threads of streams. [`scribe`]: their conversion to evidence.
//! - [`spool`]: temporary file for the older rows and histograms of a run.
//! - [`generator`]: figures about the load generator.
//! - [`drain`]: timeouts at the end of a phase.
//!
//! # Where to change what
//!
//! - recording by a thread: `snapshot.rs` (one operation), `recorder.rs` (stateful workloads),
//!   `collect.rs` (streams), `recording.rs` (evidence)
//! - common start of phases: `progress.rs` (`Watcher::begins_at`)
//! - records of a replay: `replay.rs`

#![deny(missing_docs)]

pub mod collect;
pub mod drain;
pub mod durable;
pub mod generator;
pub mod histogram;
pub mod progress;
pub mod recorder;
pub mod recording;
pub mod replay;
pub mod scribe;
pub mod snapshot;
pub mod spool;
pub mod totals;
