//! Figures that are aggregates of other figures, and the formulas of the aggregates.

use serde::Serialize;

use super::Figure;

/// Formula by which an aggregate is computed from its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// Sum.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Geometric mean.
    GeometricMean,
    /// Maximum.
    Max,
    /// Standard deviation. Its divisor may be n (population) or n − 1 (sample).
    Stddev,
    /// Percentile over all operations. The inputs are the same percentile of subsets of the
    /// operations.
    Percentile(f64),
    /// Any value between the minimum and the maximum of the inputs, such as a mean over all
    /// operations.
    Between,
}

/// A figure that is an aggregate of other figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aggregate {
    /// Name of the aggregate, such as `read bandwidth of all ranks`.
    pub what: String,
    /// Formula.
    #[serde(rename = "how")]
    pub formula: Formula,
    /// The figure that is the aggregate.
    pub total: Figure,
    /// Inputs.
    pub of: Vec<Figure>,
    /// Permitted relative deviation of the aggregate. The tool's source code explains a deviation
    /// of this size.
    pub slack: f64,
}

/// Two numbers: the number of parts that the result states, and the number of parts that it
/// contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// Kind of the parts: `ranks`, `hosts` or `jobs`.
    pub of: String,
    /// Number of parts that the result states.
    pub stated: Figure,
    /// Number of parts that the result contains.
    pub found: u64,
    /// Names of the missing parts, if known.
    pub missing: Vec<String>,
    /// Description of the place where the result contains the parts, such as `listed in
    /// host_cpu_count`.
    pub place: String,
}

/// A pass over the data: an epoch, or a repeat within a run. Each pass processes the same data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pass {
    /// Number or name of the pass.
    pub name: String,
    /// Duration, ns.
    pub duration_ns: Option<Figure>,
    /// Rate in samples, operations or bytes per second. The unit is the same for all passes of a
    /// result.
    pub rate_per_s: Option<Figure>,
    /// Percentage of time in which the consumer of the data was busy, and not waiting for data.
    pub busy_percent: Option<Figure>,
}
