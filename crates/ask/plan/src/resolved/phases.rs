//! Phases and repetition.

use serde::{Deserialize, Serialize};

use super::words::{CacheState, Condition};

/// Phases of a run and their lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// State of the caches at the start of the measured phase.
    pub cache: CacheState,
    /// Preconditioning writes, for flash.
    pub condition: Condition,
    /// Maximum duration of conditioning.
    pub condition_max_ns: u64,
    /// Length of the warm-up. For a mail store it is the maximum: the warm-up ends when the cache
    /// is full and one checkpoint depth of log has been written.
    pub warm_up_ns: u64,
    /// Length of the measured phase, or its maximum with `until_steady`.
    pub measure_ns: u64,
    /// True if the measured phase ends at steady state.
    pub until_steady: bool,
    /// Round length for the steady-state rule.
    pub round_ns: u64,
    /// True to read and check all data at the end.
    pub verify: bool,
}

/// Repetition of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Number of runs per target.
    pub runs: u32,
    /// True if each run creates its own data.
    pub fresh: bool,
}
