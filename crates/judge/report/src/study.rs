//! Charts and tables of several runs: the throughput-latency curve of a search, the table and heat
//! maps of a sweep, and the figures of a comparison.

mod compare;
mod curve;
mod shape_group;
mod sweep;

pub use compare::{ComparisonDrawing, unit};
pub(crate) use compare::{GEOMETRIC, figure};
pub use curve::Curve;
pub(crate) use shape_group::{ShapeGroup, reads, size};
pub use sweep::SweepDrawing;
