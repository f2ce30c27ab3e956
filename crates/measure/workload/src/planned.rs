//! Converts the workload of a plan to streams and mail stores. The result is the same for every
//! driver.

mod error;
pub mod gate;
pub mod pace;
pub mod store;
pub mod streams;
pub mod trace;

pub use error::PlannedError;
pub use pace::StreamPace;
