//! Streams of operations, address and arrival distributions, block content and stamps, and the mail
//! store's logic. This crate does no I/O and reads no clock.
//!
//! # Where to change what
//!
//! - an operation of the mail store: `mailbox/work.rs`; its page and log format: `mailbox/page.rs`,
//!   `record.rs`
//! - conversion of a plan to streams, arrivals and stores: `planned`
//! - mapping of traces to targets: `trace/map.rs`; streams that replay a trace: `planned/trace.rs`,
//!   and their pace: `planned/pace.rs`

pub mod address;
pub mod arrival;
pub mod content;
pub mod mailbox;
pub mod matrix;
pub mod planned;
pub mod stamp;
pub mod step;
pub mod trace;
