//! Figures that are aggregates of other figures, with the formula of the aggregate.

use serde::Serialize;

use super::Figure;

/// Formula of an aggregate.
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
    /// A value between the minimum and the maximum of the inputs, such as a mean over all
    /// operations.
    Between,
}

/// A figure that is an aggregate of other figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aggregate {
    /// Name, such as `read bandwidth of all ranks`.
    pub what: String,
    /// Formula.
    #[serde(rename = "how")]
    pub formula: Formula,
    /// The aggregate figure.
    pub total: Figure,
    /// Inputs.
    pub of: Vec<Figure>,
    /// Relative deviation that is permitted because the tool's source code explains it.
    pub slack: f64,
}

/// Number of parts that the result states, and number of parts that it contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// Kind of part: `ranks`, `hosts`, `jobs`.
    pub of: String,
    /// Number of parts that the result states.
    pub stated: Figure,
    /// Number of parts that the result contains.
    pub found: u64,
    /// Names of the missing parts, if known.
    pub missing: Vec<String>,
    /// Where the result contains the parts, in words, such as `listed in host_cpu_count`.
    pub place: String,
}

/// A pass over the data, which each pass processes again: an epoch, or a repeat within a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pass {
    /// Number or name of the pass.
    pub name: String,
    /// Duration, ns.
    pub duration_ns: Option<Figure>,
    /// Rate in samples, operations or bytes per second. All passes of a result have the same unit.
    pub rate_per_s: Option<Figure>,
    /// Percentage of time in which the consumer of the data was busy, and not waiting for data.
    pub busy_percent: Option<Figure>,
}
