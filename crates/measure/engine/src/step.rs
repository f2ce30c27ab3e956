//! Drives a stateful workload (`plimsoll_workload::step`) against files.
//!
//! Each thread owns one part of the workload with its files, buffers and queue. The threads share
//! only a few atomic variables, which contain the current phase ([`Control`]). Each thread records
//! separately, and sends a snapshot ([`plimsoll_record::snapshot`]) once per interval.

mod control;
mod driver;
mod stage;
mod thread_timeouts;

pub use control::Control;
pub use driver::{DriveArgs, WorkloadProgress, drive};
pub use stage::{Event, PartResult, Stage, run_stage};
