//! Finding the load line: which load to measure next, and when enough is known.
//!
//! A pure state machine. It proposes a load, is told what was measured there, and so on until it
//! knows the highest load carried within every latency ceiling, the knee, and the fewest threads
//! that meet the requirement, in at most 16 steps:
//!
//! 1. *Grow* fourfold until a ceiling is broken or throughput no longer grows.
//! 2. *Refine* where most could still be gained: between the best point and its neighbours.
//! 3. *Requirement*: close in on the fewest threads that meet it.
//! 4. *Confirm* the answer by measuring it again.
//!
//! That more load gives more throughput or more latency is not taken for granted: a disk tier
//! pushed past its efficient range loses both. A gap between two measured loads is closed only when
//! throughput that went on growing as it came, right up to the upper load, and dropped there, would
//! not be worth a step; and the best load stands only with neighbours measured on both sides within
//! a factor of two. Curves that flatten (J. Zahorjan et al., *Balanced Job Bound Analysis of
//! Queueing Networks*, CACM 25 (1982)), that fall (N. J. Gunther, *Guerrilla Capacity Planning*,
//! 2007) and that drop at a cliff are found alike.

mod curve;
mod search;

pub use search::Search;

/// Most steps of a search, repeats of a point included.
pub const STEPS_MAX: usize = 16;

/// How the load is issued, hence what a load is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Loop {
    /// A load is a number of threads, or operations outstanding.
    Closed,
    /// A load is a rate in operations per second; where less than 97 % of it is achieved, it is not
    /// carried.
    Open,
}

/// What is searched for, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// How the load is issued.
    pub issue: Loop,
    /// Smallest load that is measured; at least 1.
    pub load_min: u64,
    /// Largest load that is measured.
    pub load_max: u64,
    /// Latency ceilings in ns, in the order of [`Point::latencies_ns`]. May be empty.
    pub ceilings_ns: Vec<f64>,
    /// Rate that the application needs, in operations per second.
    pub required_per_s: Option<f64>,
    /// Steps after which the search ends with what it knows; 16 at most.
    pub steps_max: usize,
}

/// What was measured at a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The load, as proposed.
    pub load: u64,
    /// Operations per second.
    pub throughput_per_s: f64,
    /// The latencies that have ceilings, in ns and in the ceilings' order.
    pub latencies_ns: Vec<f64>,
    /// Whether the measurement was steady. One that was not is repeated once; a load that is
    /// unsteady twice is not carried.
    pub steady: bool,
}

/// Why a load is proposed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// To see where the curve bends.
    Grow,
    /// To find the highest load within the ceilings.
    Refine,
    /// To find the fewest threads that meet the requirement.
    Requirement,
    /// Because the last measurement there was not steady.
    Repeat,
    /// To confirm an answer.
    Confirm,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure at this load.
    Measure {
        /// The load.
        load: u64,
        /// Why there.
        purpose: Purpose,
    },
    /// All is known that can be known within the steps.
    Done(Outcome),
}

/// A load that was measured, all its measurements taken together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// The load.
    pub load: u64,
    /// Mean of its measurements, in operations per second.
    pub throughput_per_s: f64,
    /// How many measurements.
    pub measurements: usize,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The highest throughput carried within every ceiling, at the smallest load that gives it;
    /// `None` if no measured load is within them.
    pub load_line: Option<Carried>,
    /// Whether the load line was measured twice and lies between neighbours that carry less.
    pub confirmed: bool,
    /// Where throughput over latency is largest (L. Kleinrock, *Power and Deterministic Rules of
    /// Thumb*, 1979): beyond it, latency grows faster than throughput.
    pub knee: Option<Carried>,
    /// The smallest load that meets the requirement within the ceilings; `None` without a
    /// requirement, or if none does.
    pub fewest: Option<Carried>,
    /// Whether a load just below `fewest` (one less, or 5 %) was measured and does not meet it.
    pub fewest_checked: bool,
    /// Measurements taken.
    pub steps: usize,
}
