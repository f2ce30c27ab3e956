//! Figures that aggregate other figures, with the formula.

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
    /// Standard deviation, of a population or of a sample.
    Stddev,
    /// Percentile over all operations, compared with the same percentile of subsets.
    Percentile(f64),
    /// A value between the minimum and the maximum of the inputs, such as a mean over all
    /// operations.
    Between,
}

/// A figure that aggregates other figures.
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
    /// Relative deviation that can be explained by the tool's source code.
    pub slack: f64,
}

/// Stated number and actual number of parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// Kind of part: `ranks`, `hosts`, `jobs`.
    pub of: String,
    /// Stated number.
    pub stated: Figure,
    /// Actual number.
    pub found: u64,
    /// Names of the missing parts, if known.
    pub missing: Vec<String>,
    /// Words for the location of the parts, such as `listed in host_cpu_count`.
    pub place: String,
}

/// A pass over the same data: an epoch, or a repeat within a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pass {
    /// Number or name of the pass.
    pub name: String,
    /// Duration, ns.
    pub duration_ns: Option<Figure>,
    /// Rate in samples, operations or bytes per second. All passes of a result have the same unit.
    pub rate_per_s: Option<Figure>,
    /// Share of time in which the consumer was busy instead of waiting, in percent.
    pub busy_percent: Option<Figure>,
}
