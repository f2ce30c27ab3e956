//! Streams of operations against a target: closed and open loops, recorded in full.
//!
//! - [`source`]: sources of operations; [`matrix`]: a plan's streams as such a source.
//! - [`pacing`]: start times of operations.
//! - [`drive`]: the loop of a driving thread.
//! - [`handover`], `collect`: pass records ([`plimsoll_record::cells`]) from the threads to the
//!   writer without either side waiting.
//! - [`run`]: threads, one schedule, one writer.

mod collect;
mod crew;
pub mod drive;
pub mod failure;
pub mod handover;
pub mod matrix;
pub mod pacing;
pub mod run;
pub mod source;
pub(crate) mod uniform;
