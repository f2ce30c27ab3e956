//! What a result says of latencies.

use serde::Serialize;

use super::Figure;

/// Which part of an operation's life a latency covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Until the system took the operation.
    Submission,
    /// From there until it was done.
    Completion,
    /// From before the submission until it was done.
    #[default]
    Total,
    /// Of several operations that serve one request of the application.
    Request,
    /// The result does not say.
    Unstated,
}

/// Latencies of one kind of operation at one stage. Figures in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// What it covers.
    pub stage: Stage,
    /// How many operations it is of.
    pub count: Option<Figure>,
    /// Least.
    pub min_ns: Option<Figure>,
    /// Arithmetic mean.
    pub mean_ns: Option<Figure>,
    /// Greatest.
    pub max_ns: Option<Figure>,
    /// Standard deviation.
    pub stddev_ns: Option<Figure>,
    /// In the order printed.
    pub percentiles: Vec<Percentile>,
    /// A histogram, by rising latency.
    pub bins: Vec<Bin>,
    /// Sum of all latencies, where it is stated.
    pub sum_ns: Option<Figure>,
    /// True where the figures cover more operations than the rate beside them, or fewer: a mean that
    /// was made over another time or by samples says nothing of the number in flight.
    pub sampled: bool,
}

/// A percentile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Share of the operations that took no longer, 0 to 1.
    pub quantile: f64,
    /// The latency, ns.
    pub ns: Figure,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Least latency in it, ns.
    pub from_ns: f64,
    /// Greatest latency in it, ns.
    pub to_ns: f64,
    /// Operations in it.
    pub count: f64,
}
