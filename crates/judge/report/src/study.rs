//! Reports of several runs: the throughput-latency curve of a search, the table and maps of a
//! sweep, the comparison of experiments.
//!
//! Their inputs are types of this module, because they are computed from several bundles and from
//! statistics. Each gives a [`crate::document::Document`].

pub mod compare;
pub mod curve;
pub mod sweep;

pub use compare::{Comparison, Metric, Side};
pub use curve::{Curve, Step};
pub use sweep::{Cell as SweepCell, Sweep};
