//! Figures over time.

use serde::Serialize;

use super::{Kind, Stage};

/// Quantity of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    RatePerS,
    /// Bytes per second.
    BandwidthPerS,
    /// Mean latency of an interval, or latency of one operation, ns.
    LatencyNs,
}

impl Quantity {
    /// Returns the name for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RatePerS => "rate",
            Self::BandwidthPerS => "bandwidth",
            Self::LatencyNs => "latency",
        }
    }
}

/// A quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Quantity.
    pub quantity: Quantity,
    /// Kind of operation.
    pub kind: Kind,
    /// Stage, if the quantity is a latency.
    pub stage: Stage,
    /// Location: the file or field.
    pub field: String,
    /// Interval length, s; `None` if each point is one operation.
    pub interval_s: Option<f64>,
    /// Points in the order recorded.
    pub points: Vec<Point>,
    /// True if the tool records only part of the run by design.
    pub partial: bool,
    /// True if the values can be too low, but never too high, for a reason in the tool's source
    /// code.
    pub understates: bool,
}

/// Point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Time from the start of the run, s.
    pub at_s: f64,
    /// Value in the unit of the quantity.
    pub value: f64,
}
