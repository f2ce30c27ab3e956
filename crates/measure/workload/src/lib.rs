//! Logic of the workloads: streams of operations, distributions of addresses and arrivals, content
//! of blocks and stamps, and the mail store. This crate does no I/O and reads no clock.
//!
//! # Where to change what
//!
//! - an operation of the mail store: `mailbox/work.rs`; the format of its pages and its log:
//!   `mailbox/page.rs`, `record.rs`
//! - conversion of a plan to streams, arrivals and mail stores: `planned`
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
