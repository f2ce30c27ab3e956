//! A plan's workload in the workload's own terms: the same streams and stores whichever driver carries
//! them out.

mod error;
pub mod pace;
pub mod store;
pub mod streams;
pub mod trace;

pub use error::PlannedError;
pub use pace::StreamPace;
