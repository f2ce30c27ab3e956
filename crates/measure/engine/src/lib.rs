//! Drives a workload against a real target, with queues of I/O, streams of operations, pacing and
//! recording. The crate measures and does not interpret the results.
//!
//! # Where to change what
//!
//! - phases of a mailbox run: `mailbox/run.rs`, `load.rs`
//! - phases of a matrix run: `matrix/run.rs`; clients of each thread: `load.rs`; control of the
//!   phases, table rows and samples of the host: `coordinator.rs`; location of the data:
//!   `data_set.rs`; protection of devices: `device.rs`
//! - NFS and S3 queues: `nfs/queue.rs`, `s3/queue.rs`; the data on servers: `nfs/data_set.rs`,
//!   `s3/data_set.rs`, `matrix/remote.rs`
//! - metadata operations on local files: `matrix/tree.rs`; their system calls:
//!   `measure/sys/src/names.rs`
//! - choice of the CPUs for driving threads: `placement.rs`, from data of
//!   `measure/observe/src/completion.rs`
//! - thread that collects the results of streams: `stream/collect.rs`; start at the same time as
//!   other hosts: `start_barrier.rs`
//! - removal of data: `work_dir`; free space: `work_dir/space.rs`
//! - tests of the drivers' measurement error: `simulated.rs`, `tests/drivers`,
//!   `examples/bench/reference`; results of these tests: `docs/accuracy.md`

pub mod allow_list;
pub mod backend;
pub mod blocking_call;
mod caches;
pub mod calibrate;
pub mod defect;
pub mod durability;
pub mod end_condition;
mod error;
mod issue;
pub mod mailbox;
pub mod matrix;
pub mod memory;
pub mod nfs;
mod open_target;
pub mod placement;
pub mod s3;
#[cfg(test)]
mod simulated;
mod start_barrier;
pub mod step;
pub mod stop_request;
pub mod stream;
pub mod timer;
mod work_dir;

pub use error::{EngineError, ErrorKind};
pub use open_target::HeldTarget;
pub use work_dir::clean::{CleanupReport, leftovers, remove_data};
pub use work_dir::maps::{MapGcOutcome, collect as collect_maps};
pub use work_dir::space::{Space, space};
