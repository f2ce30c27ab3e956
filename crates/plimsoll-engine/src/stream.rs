//! Streams of operations against a target: closed and open loops, recorded in full.
//!
//! - [`source`]: where operations come from; [`matrix`]: a plan's streams as such a
//!   source.
//! - [`pacing`]: when the next one starts.
//! - [`drive`]: the loop that a driving thread runs.
//! - [`handover`], `collect`: how what is written down ([`plimsoll_record::cells`]) leaves the thread without
//!   either side waiting.
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
