//! Runs streams of operations against a target, as closed or open loops, and records every
//! operation.
//!
//! - [`source`]: sources of operations; [`matrix`]: the streams of a plan as a source.
//! - [`pacing`]: start times of operations.
//! - [`drive`]: the loop of a thread that drives operations.
//! - [`outbox`], `collect`: pass records ([`plimsoll_record::snapshot`]) from the threads to the
//!   writer. Neither side waits for the other.
//! - [`run`]: the threads, their common schedule and their common writer.

mod collect;
pub mod drive;
mod driving_threads;
pub mod failure;
pub mod matrix;
pub mod outbox;
pub mod pacing;
pub mod run;
pub mod source;
pub(crate) mod uniform;
