//! Streams of reads and writes on files, a block device or nothing: the phases of a matrix run.
//!
//! - [`home`], [`manifest`]: where the data lies, whose it is, and what it should hold.
//! - [`device`]: what keeps a block device with somebody's data from being overwritten.
//! - [`data`]: making the data, and checking all of it.
//! - [`condition`]: writes before the measurement.
//! - [`check`]: checking what a run left.
//! - [`remote`]: data that lies on NFS exports or in an S3 bucket.
//! - `read_back`: a sample of what was written, where not all data is checked.
//! - `tree`: where a share's files lie in directories of this host.
//! - [`run`]: the phases, one after the other; `load` deals clients to threads, `conductor` listens to them,
//!   `generator` notes how the generator itself did.

pub mod check;
pub mod condition;
mod conductor;
pub mod data;
pub mod device;
mod generator;
pub mod home;
mod load;
pub mod manifest;
mod pulse;
mod read_back;
pub mod remote;
mod replay;
mod request;
pub mod run;
mod running;
mod tree;

pub use check::{DataCheck, check_data, is_data_set};
pub use home::DataHome;
pub use request::HomeRequest;
pub use run::run;
pub use running::MatrixRun;
