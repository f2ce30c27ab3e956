//! Drives a workload against a real target: queues of I/O, streams of operations, pacing, recording.
//! It measures and does not interpret.

pub mod allowed;
pub mod aside;
pub mod backend;
mod barrier;
mod caches;
pub mod calibrate;
pub mod defect;
pub mod ending;
mod error;
mod issue;
pub mod mailbox;
pub mod matrix;
pub mod memory;
pub mod nfs;
pub mod placement;
pub mod s3;
#[cfg(test)]
mod simulated;
pub mod step;
pub mod stream;
pub mod timer;
pub mod urgency;
mod work_dir;

pub use error::{EngineError, ErrorKind};
pub use work_dir::HeldTarget;
pub use work_dir::clean::{Cleaned, remove_data};
pub use work_dir::maps::{Fate, collect as collect_maps};
pub use work_dir::space::{Space, space};
