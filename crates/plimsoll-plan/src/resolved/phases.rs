//! Phases and repeats.

use serde::{Deserialize, Serialize};

use super::words::{CacheState, Condition};

/// The phases of a run and their lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// State of the caches when the measured phase begins.
    pub cache: CacheState,
    /// What is written before, for flash.
    pub condition: Condition,
    /// The longest that conditioning may take.
    pub condition_max_ns: u64,
    /// Length of the warm-up; for a mail store the longest, as it ends when the cache is full and a
    /// checkpoint depth has been logged.
    pub warm_up_ns: u64,
    /// Length of the measured phase, or the longest that it may take until the system is steady.
    pub measure_ns: u64,
    /// Whether the measured phase ends as soon as the system is steady.
    pub until_steady: bool,
    /// Length of a round of the steady-state rule.
    pub round_ns: u64,
    /// Whether everything is read and checked at the end.
    pub verify: bool,
}

/// How often a plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Runs of each target.
    pub runs: u32,
    /// Whether each run makes its data anew.
    pub fresh: bool,
}
