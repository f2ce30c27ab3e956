//! Streams of operations against a target: closed and open loops, recorded in full.

pub mod collect;
pub mod drive;
pub mod handover;
pub mod histogram;
pub mod pacing;
pub mod recorder;
pub mod source;
