//! Figures over time that a tool reports.

use serde::Serialize;

use super::{Kind, Stage};

/// Quantity whose values a series contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    RatePerS,
    /// Bytes per second.
    BandwidthPerS,
    /// Mean latency of an interval, or latency of a single operation, in ns.
    LatencyNs,
}

impl Quantity {
    /// Returns the name of the quantity that is shown to users.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RatePerS => "rate",
            Self::BandwidthPerS => "bandwidth",
            Self::LatencyNs => "latency",
        }
    }
}

/// Values of a quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Quantity.
    pub quantity: Quantity,
    /// Kind of operation.
    pub kind: Kind,
    /// Stage, if the quantity is a latency.
    pub stage: Stage,
    /// Location of the series in the result. It is a file or a field.
    pub field: String,
    /// Length of the intervals, in seconds; `None` if each point is a single operation.
    pub interval_s: Option<f64>,
    /// Points, in the order in which the tool recorded them.
    pub points: Vec<Point>,
    /// True if the tool records only a part of the run in such a series.
    pub partial: bool,
    /// True if the tool's method of computing the values can make them too low, but never too high.
    pub understates: bool,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Time since the start of the run, in seconds.
    pub at_s: f64,
    /// Value at this point, in the unit of the quantity.
    pub value: f64,
}
