//! Streams of operations against a target: closed and open loops, recorded in full.
//!
//! - [`source`]: sources of operations; [`matrix`]: the streams of a plan as a source.
//! - [`pacing`]: start times of operations.
//! - [`drive`]: the loop of a driving thread.
//! - [`outbox`], `collect`: pass records ([`plimsoll_record::snapshot`]) from the threads to the
//!   writer without either side waiting.
//! - [`run`]: threads, one schedule, one writer.

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
