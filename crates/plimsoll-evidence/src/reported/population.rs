//! Many values of one kind, too many for a part each: times of thousands of ranks, latencies of every
//! request.

use serde::Serialize;

use super::{Figure, How};

/// What the values measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes per second.
    BytesPerS,
    /// Operations, samples or objects per second.
    PerS,
    /// Bytes.
    Bytes,
    /// A number.
    Count,
}

/// Values of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Whose they are: `ranks`, `requests`.
    pub of: String,
    /// What they are: `time to write`.
    pub what: String,
    /// What they measure.
    pub unit: Unit,
    /// Where they stand: the column or list.
    pub field: String,
    /// The values, in the order of the file.
    pub values: Vec<f64>,
    /// True where the values are of parts that did the same at the same time, so that one may be held
    /// against the others.
    pub alike: bool,
    /// Figures that claim to be made of these values.
    pub claims: Vec<Claim>,
}

/// A figure that claims to be made of a population.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// How it is made.
    pub how: How,
    /// The figure, in the unit of the population.
    pub total: Figure,
    /// Share by which it may lie off for a reason that the tool's source gives.
    pub slack: f64,
}
