//! Search for the load line: the next load to measure, and the end of the search.
//!
//! A pure state machine. It proposes a load and receives the measurement. The result is the highest
//! load within every latency ceiling, the knee, and the minimum number of threads that achieves the
//! requirement. The search takes at most 16 steps:
//!
//! 1. *Grow* fourfold until a ceiling is exceeded or the throughput stops growing.
//! 2. *Refine* between the best point and its neighbours, at the largest possible gain.
//! 3. *Requirement*: narrow down the minimum number of threads that achieves the requirement.
//! 4. *Confirm* the answer with a second measurement.
//!
//! The search does not assume that more load gives more throughput or more latency: above the
//! efficient range of a disk tier, both decrease. Between two measured loads, the throughput could
//! grow almost until the upper load, and then drop. The search ignores such a gap only if even that
//! gain would not justify a step. The best load is final only with measured neighbours on both
//! sides within a factor of two. The search finds curves that flatten (J. Zahorjan et al.,
//! *Balanced Job Bound Analysis of Queueing Networks*, CACM 25 (1982)), that fall (N. J. Gunther,
//! *Guerrilla Capacity Planning*, 2007) and that drop at a cliff.

mod curve;
mod search;

use serde::{Deserialize, Serialize};

use super::knee::Bend;

pub use search::Search;

/// Maximum number of steps of a search, including repeats of a point.
pub const STEPS_MAX: usize = 16;

/// Way of issuing the load, which defines the unit of a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loop {
    /// A load is a number of threads or outstanding operations.
    Closed,
    /// A load is a rate in operations per second. The storage sustains it if at least 97 % of it
    /// is achieved.
    Open,
}

/// Goal and range of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Way of issuing the load.
    pub issue: Loop,
    /// Number of hosts that each have the load; at least 1. Rates are sums over the hosts.
    pub hosts: u32,
    /// Smallest load to measure; at least 1.
    pub load_min: u64,
    /// Largest load to measure.
    pub load_max: u64,
    /// Latency ceilings in ns, in the order of [`Point::latencies_ns`]. May be empty.
    pub ceilings_ns: Vec<f64>,
    /// Rate that the application needs, in operations per second.
    pub required_per_s: Option<f64>,
    /// Number of steps after which the search stops; at most 16.
    pub steps_max: usize,
}

/// Measurement at a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Proposed load.
    pub load: u64,
    /// Operations per second.
    pub throughput_per_s: f64,
    /// Latencies with ceilings, in ns and in the ceilings' order.
    pub latencies_ns: Vec<f64>,
    /// True if the measurement was steady. An unsteady measurement is repeated once. The storage
    /// does not sustain a load that is unsteady twice.
    pub steady: bool,
}

/// Reason why a load is proposed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Find the bend of the curve.
    Grow,
    /// Find the highest load within the ceilings.
    Refine,
    /// Find the minimum number of threads that meets the requirement.
    Requirement,
    /// Repeat a measurement that was not steady.
    Repeat,
    /// Confirm an answer.
    Confirm,
}

/// Next action of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure at this load.
    Measure {
        /// Load to measure.
        load: u64,
        /// Reason for this load.
        purpose: Purpose,
    },
    /// The search is complete, or has no steps left.
    Done(Outcome),
}

/// Measured load, with the mean of all its measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLoad {
    pub load: u64,
    /// Mean of the measurements, in operations per second.
    pub rate_per_s: f64,
    pub measurements: usize,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Highest throughput within every ceiling, at the smallest load that gives it. `None` if no
    /// measured load is within the ceilings.
    pub load_line: Option<MeasuredLoad>,
    /// True if the load line was measured twice and its neighbours on both sides achieve less.
    pub confirmed: bool,
    /// Load with the largest throughput over latency (L. Kleinrock, *Power and Deterministic Rules
    /// of Thumb*, 1979). Beyond it, latency grows faster than throughput.
    pub knee: Option<MeasuredLoad>,
    /// Load at which the curve bends, among the measured loads; `None` with fewer than three of
    /// them.
    pub bend: Option<Bend>,
    /// Smallest load that meets the requirement within the ceilings. `None` without a requirement,
    /// or if no load meets it.
    pub required_load: Option<MeasuredLoad>,
    /// True if a load just below `required_load` (one less, or 5 %) was measured and does not meet
    /// the requirement.
    pub required_load_checked: bool,
    /// Number of measurements.
    pub steps: usize,
}
