//! Estimates from simulated samples.

mod batch;

pub use batch::{BatchMeans, Estimate};
