//! Drives a stateful workload (`plimsoll_workload::step`), whose I/O goes to files.
//!
//! Each thread owns one part of the workload, with the files, buffers and queue of this part. The
//! threads share only a few atomic variables, which contain the current phase ([`Control`]). Each
//! thread records its own operations, and sends a snapshot ([`plimsoll_record::snapshot`]) once in
//! each interval.

mod control;
mod driver;
mod stage;
mod thread_timeouts;

pub use control::Control;
pub use driver::{DriveArgs, WorkloadProgress, drive};
pub use stage::{Event, PartResult, Stage, run_stage};
