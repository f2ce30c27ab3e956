//! A plan's workload as streams and stores, the same for every driver.

mod error;
pub mod gate;
pub mod pace;
pub mod store;
pub mod streams;
pub mod trace;

pub use error::PlannedError;
pub use pace::StreamPace;
