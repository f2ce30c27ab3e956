//! Converts a plan's workload to streams and stores, which are the same for every driver.

mod error;
pub mod gate;
pub mod pace;
pub mod store;
pub mod streams;
pub mod trace;

pub use error::PlannedError;
pub use pace::StreamPace;
