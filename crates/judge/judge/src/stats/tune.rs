//! Search for the load line: decides which load to measure next, and when the search ends.
//!
//! A pure state machine. It proposes a load and receives the measurement. The result is the load
//! with the highest throughput within every latency ceiling, the knee, and the minimum number of
//! threads that achieves the requirement. The search takes at most 16 steps:
//!
//! 1. *Grow*: increase the load fourfold until a latency ceiling is exceeded or the throughput
//!    stops growing.
//! 2. *Refine*: measure between the best point and its neighbours, where the possible gain is
//!    largest.
//! 3. *Requirement*: narrow down the minimum number of threads that achieves the requirement.
//! 4. *Confirm*: repeat the measurement of the result.
//!
//! The search does not assume that more load gives more throughput or more latency: above the
//! efficient range of a disk tier, both decrease. Between two measured loads, the throughput could
//! grow almost until the upper load, and then drop. The search skips the gap between them only if
//! even this gain would not justify a step. The best load is final only if loads on both sides of
//! it, within a factor of two, were measured. The search works for curves that flatten (J. Zahorjan
//! et al., *Balanced Job Bound Analysis of Queueing Networks*, CACM 25 (1982)), that fall (N. J.
//! Gunther, *Guerrilla Capacity Planning*, 2007) and that drop at a cliff.

mod curve;
mod search;

use serde::{Deserialize, Serialize};

use super::knee::Bend;

pub use search::Search;

/// Maximum number of steps of a search, including repeats of a point.
pub const STEPS_MAX: usize = 16;

/// Kind of load: a closed or an open loop. The kind determines the unit in which a load is stated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loop {
    /// A load is a number of threads or outstanding operations.
    Closed,
    /// A load is a rate in operations per second. The storage sustains a rate if it achieves at
    /// least 97 % of the rate.
    Open,
}

/// Goal of the search, and the range of loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Way of issuing the load.
    pub issue: Loop,
    /// Number of hosts that issue the load; at least 1. Each host issues the whole load, and rates
    /// are sums over the hosts.
    pub hosts: u32,
    /// Smallest load to measure; at least 1.
    pub load_min: u64,
    /// Largest load to measure.
    pub load_max: u64,
    /// Latency ceilings in ns, in the order of [`Point::latencies_ns`]. The list may be empty.
    pub ceilings_ns: Vec<f64>,
    /// Rate that the application requires, in operations per second.
    pub required_per_s: Option<f64>,
    /// Maximum number of steps of the search; at most 16.
    pub steps_max: usize,
}

/// Measurement at one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Proposed load.
    pub load: u64,
    /// Operations per second.
    pub throughput_per_s: f64,
    /// Latencies that have ceilings, in ns, in the order of the ceilings.
    pub latencies_ns: Vec<f64>,
    /// True if the measurement was steady. An unsteady measurement is repeated once. If it is
    /// unsteady again, the load counts as not sustained.
    pub steady: bool,
}

/// Reason why a load is proposed for measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Find the bend of the curve.
    Grow,
    /// Find the load with the highest throughput at which no latency exceeds its ceiling.
    Refine,
    /// Find the minimum number of threads that meets the requirement.
    Requirement,
    /// Repeat a measurement that was not steady.
    Repeat,
    /// Repeat the measurement of a result to confirm it.
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

/// A measured load, with the means of all measurements at this load.
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
    /// Load with the highest throughput within every latency ceiling. If several loads achieve this
    /// throughput, the smallest of them. `None` if no measured load is within the ceilings.
    pub load_line: Option<MeasuredLoad>,
    /// True if the load line was measured twice and the neighbouring loads on both sides achieve a
    /// lower throughput.
    pub confirmed: bool,
    /// Load with the largest ratio of throughput to latency (L. Kleinrock, *Power and Deterministic
    /// Rules of Thumb*, 1979). Above this load, latency grows faster than throughput.
    pub knee: Option<MeasuredLoad>,
    /// Measured load at which the curve bends; `None` if fewer than three loads were measured.
    pub bend: Option<Bend>,
    /// Smallest load that meets the requirement within the latency ceilings. `None` if there is no
    /// requirement or no load meets it.
    pub required_load: Option<MeasuredLoad>,
    /// True if a load just below `required_load` (lower by one, or by 5 %) was measured and does
    /// not meet the requirement.
    pub required_load_checked: bool,
    /// Number of measurements.
    pub steps: usize,
}
