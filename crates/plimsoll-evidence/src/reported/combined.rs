//! Which figures claim to be made of which others.

use serde::Serialize;

use super::Figure;

/// How a figure is made of others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Their sum.
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// Their geometric mean.
    GeometricMean,
    /// The greatest of them.
    Max,
    /// The least of them.
    Min,
    /// Their standard deviation, of a population or of a sample.
    Stddev,
    /// The percentile at this quantile of all operations behind them, of which they are percentiles.
    Percentile(f64),
    /// A figure that covers all that they cover, such as a mean over all operations: it lies between the
    /// least and the greatest of them.
    Between,
}

/// A figure and what it claims to be made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combined {
    /// What it is, in words: `read bandwidth of all ranks`.
    pub what: String,
    /// How it is made.
    pub how: How,
    /// The figure.
    pub total: Figure,
    /// What it is made of.
    pub of: Vec<Figure>,
    /// Share by which it may lie off for a reason that the tool's source gives.
    pub slack: f64,
}

/// How many parts there should be, and which are there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// What is counted: `ranks`, `hosts`, `jobs`.
    pub of: String,
    /// How many there should be, as stated.
    pub stated: Figure,
    /// How many are there.
    pub found: u64,
    /// Those that are missing by name, where that can be told.
    pub missing: Vec<String>,
    /// Where the parts were looked for.
    pub place: String,
}

/// One pass over the same data: an epoch, a repeat within a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pass {
    /// Its number or name.
    pub name: String,
    /// How long it took, ns.
    pub duration_ns: Option<Figure>,
    /// What it did per second: samples, operations, bytes; the same for all passes of a result.
    pub rate_per_s: Option<Figure>,
    /// Share of its time in which the consumer was busy and not waiting, percent.
    pub busy_percent: Option<Figure>,
}
