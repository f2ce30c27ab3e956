//! Phases of a matrix run. The run drives streams of reads and writes on files, on a block device
//! or on the null target.
//!
//! - [`data_set`], [`manifest`]: location of the data, its owner, and its expected contents.
//! - [`device`]: protection of block devices that contain data.
//! - [`pass`]: creation of the data, and verification of the whole data.
//! - [`condition`]: writes that condition the storage before the measurement.
//! - [`check`]: verification of the data by a separate command after a run.
//! - [`remote`]: data on NFS exports or in an S3 bucket.
//! - `read_back`: verification of a sample of the written blocks, if the plan does not verify all
//!   data.
//! - `tree`: paths of the files in a share, for directories of this host.
//! - [`run`]: the phases, in their order. `load` distributes clients over threads, `coordinator`
//!   receives events from the threads, and `generator` records the generator's own overhead.

mod alignment;
pub mod check;
pub mod condition;
mod coordinator;
pub mod data_set;
pub mod device;
mod generator;
mod load;
pub mod manifest;
pub(crate) mod memory;
pub mod pass;
mod plan_check;
mod probe;
mod progress_meter;
mod read_back;
pub mod remote;
mod replay;
mod request;
pub mod run;
mod run_state;
mod tree;

pub use check::{DataCheck, check_data, is_data_set};
pub use data_set::DataSet;
pub use plan_check::{check_depth, check_plan};
pub use probe::{check_tracking, probe_device};
pub use request::DataSetRequest;
pub use run::run;
pub use run_state::MatrixRun;
