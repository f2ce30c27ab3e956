//! Records runs, for all drivers. Threads and simulations use the same sums and histograms, which
//! become one recording.
//!
//! - [`recording`]: the evidence of a running plan. [`progress`]: progress reports.
//! - [`totals`], [`histogram`]: exact sums and histograms. [`snapshot`]: the sums and histograms of
//!   one thread in one interval, for every driver.
//! - [`recorder`]: records the intervals of a thread that drives a stateful workload. [`collect`]:
//!   collects the intervals of all threads that drive streams. [`scribe`]: converts the collected
//!   intervals to evidence.
//! - [`spool`]: temporary file for the older rows and histograms of a run.
//! - [`generator`]: figures about the load generator.
//! - [`drain`]: timeouts at the end of a phase.
//!
//! # Where to change what
//!
//! - how a thread records: `snapshot.rs` (one operation), `recorder.rs` (stateful workloads),
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
