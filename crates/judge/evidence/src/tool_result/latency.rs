//! Latencies in a result.

use serde::Serialize;

use super::Figure;

/// Stage of an operation. It states which part of the operation's duration a latency measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Time from the start of an operation until the system has accepted it.
    Submission,
    /// Time from the acceptance by the system until the completion of the operation.
    Completion,
    /// Time from just before the submission until the completion of the operation.
    #[default]
    Total,
    /// Duration of an application request that consists of several operations.
    Request,
    /// The result does not state the stage.
    Unstated,
}

/// Latencies of one kind of operation, measured for one stage, in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Stage.
    pub stage: Stage,
    /// Number of operations whose latency was measured.
    pub count: Option<Figure>,
    /// Minimum.
    pub min_ns: Option<Figure>,
    /// Arithmetic mean.
    pub mean_ns: Option<Figure>,
    /// Maximum.
    pub max_ns: Option<Figure>,
    /// Standard deviation.
    pub stddev_ns: Option<Figure>,
    /// Percentiles of the latency, in the order in which the tool printed them.
    pub percentiles: Vec<Percentile>,
    /// Bins of the histogram, in ascending order of latency.
    pub bins: Vec<Bin>,
    /// Sum of all latencies, if the result states it.
    pub sum_ns: Option<Figure>,
    /// True if the latencies and the rate do not describe exactly the same operations, because the
    /// latencies are from a different period or from a sample. The number of operations in flight
    /// then cannot be computed by Little's law.
    pub sampled: bool,
}

/// A percentile of a latency distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// Latency, ns.
    pub ns: Figure,
}

/// Histogram bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower bound of the bin, in ns.
    pub from_ns: f64,
    /// Upper bound of the bin, in ns.
    pub to_ns: f64,
    /// Number of operations whose latency is in the bin.
    pub count: f64,
}
