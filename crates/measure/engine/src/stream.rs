//! Runs streams of operations against a target and records every operation. A stream is a closed
//! loop or an open loop.
//!
//! - [`source`]: sources that choose the operations; [`matrix`]: the source for the streams of a
//!   plan.
//! - [`pacing`]: determines when each operation starts.
//! - [`drive`]: the loop of one thread, which drives operations.
//! - [`outbox`], `collect`: pass records ([`plimsoll_record::snapshot`]) from the driving threads
//!   to the writer's thread. Neither thread waits for the other.
//! - [`run`]: the threads of a run, with a common schedule and a common writer.

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
