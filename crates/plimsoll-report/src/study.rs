//! Reports of more than one run: the throughput-latency curve of a tuning, the table and maps of a
//! sweep, the comparison of experiments.
//!
//! Each has its input as plain data here, because it comes from several bundles and from statistics
//! over them; what is drawn from it is a [`crate::document::Document`] like that of a run.

pub mod compare;
pub mod curve;
pub mod sweep;

pub use compare::{Comparison, Metric, Side};
pub use curve::{Curve, Step};
pub use sweep::{Cell as SweepCell, Sweep};
