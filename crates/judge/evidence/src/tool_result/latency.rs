//! Latencies in a result.

use serde::Serialize;

use super::Figure;

/// Stage of an operation: the part of the operation's duration that a latency measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// From the start until the system accepts the operation.
    Submission,
    /// From the acceptance by the system until the completion.
    Completion,
    /// From before the submission until the completion.
    #[default]
    Total,
    /// Duration of an application request that consists of several operations.
    Request,
    /// The result does not state the stage.
    Unstated,
}

/// Latencies of one kind of operation in one stage, in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Stage.
    pub stage: Stage,
    /// Number of operations.
    pub count: Option<Figure>,
    /// Minimum.
    pub min_ns: Option<Figure>,
    /// Arithmetic mean.
    pub mean_ns: Option<Figure>,
    /// Maximum.
    pub max_ns: Option<Figure>,
    /// Standard deviation.
    pub stddev_ns: Option<Figure>,
    /// Percentiles, in the order in which the tool printed them.
    pub percentiles: Vec<Percentile>,
    /// Bins of the histogram, in ascending order of latency.
    pub bins: Vec<Bin>,
    /// Sum of all latencies, if the result states it.
    pub sum_ns: Option<Figure>,
    /// True if the latencies are not of exactly the operations that the rate counts: they are from
    /// a different period or from a sample. Little's law then does not give the number of
    /// operations in flight.
    pub sampled: bool,
}

/// A percentile of a latency distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Quantile (0 to 1).
    pub quantile: f64,
    /// Latency, ns.
    pub ns: Figure,
}

/// Histogram bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower bound, ns.
    pub from_ns: f64,
    /// Upper bound, ns.
    pub to_ns: f64,
    /// Number of operations in the bin.
    pub count: f64,
}
