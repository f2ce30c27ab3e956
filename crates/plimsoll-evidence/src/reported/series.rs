//! How a run went over time.

use serde::Serialize;

use super::{Kind, Stage};

/// What a series is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    RatePerS,
    /// Bytes per second.
    BandwidthPerS,
    /// Mean latency of an interval, or the latency of one operation, ns.
    LatencyNs,
    /// Operations in flight.
    Outstanding,
}

impl Quantity {
    /// As shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RatePerS => "rate",
            Self::BandwidthPerS => "bandwidth",
            Self::LatencyNs => "latency",
            Self::Outstanding => "operations in flight",
        }
    }
}

/// A quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it is of.
    pub quantity: Quantity,
    /// Of which operations.
    pub kind: Kind,
    /// Which latency, where it is of latencies.
    pub stage: Stage,
    /// Where it stands: the file, or the field.
    pub field: String,
    /// Length of an interval, s; `None` where each point is one operation.
    pub interval_s: Option<f64>,
    /// In the order recorded.
    pub points: Vec<Point>,
    /// True where the series is of a part of the run only, by the tool's design.
    pub partial: bool,
    /// True where the values may be too low, and never too high, for a reason in the tool's source.
    pub understates: bool,
}

/// One point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Since the start of the run, s.
    pub at_s: f64,
    /// In the unit of the quantity.
    pub value: f64,
}
