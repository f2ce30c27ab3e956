//! Drives a workload against a real target: queues of I/O, streams of operations, pacing, recording.
//! It measures and does not interpret.

pub mod backend;
mod error;

pub use error::{EngineError, ErrorKind};
