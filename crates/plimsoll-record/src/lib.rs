//! What a driver leaves, whichever it is: threads and simulations record into the same sums and histograms,
//! and the same recording is made of them.
//!
//! - [`recording`]: the evidence of a run while it is made; [`progress`]: what is said meanwhile.
//! - [`recorder`], [`late`], `tally`: what a thread of a stateful workload writes down.
//! - [`cells`], [`histogram`]: what a thread of streams writes down; [`collect`]: of all threads together;
//!   [`scribe`]: that as evidence.
//! - [`generator`]: what is noted of the generator itself.
//! - [`drain`]: how long the end of a phase is waited for.
//!
//! # Where to change what
//!
//! - recording by a thread: `recorder.rs` (stateful workloads), `cells.rs` and `collect.rs`
//!   (streams), `recording.rs`
//! - common start of phases: `progress.rs` (`Watcher::begins_at`)
//! - notes of a replay: `replay.rs`

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
