//! Charts and tables of several runs: the throughput-latency curve of a search, the table and maps
//! of a sweep, the figures of a comparison.

mod compare;
mod curve;
mod sweep;

pub use compare::ComparisonDrawing;
pub use curve::Curve;
pub use sweep::SweepDrawing;
