//! Phases and repetition.

use serde::{Deserialize, Serialize};

use super::words::{CacheState, Condition};

/// Phases of a run and their lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// State of the caches at the start of the measured phase.
    pub cache: CacheState,
    /// Preconditioning writes that bring flash to a steady state.
    pub condition: Condition,
    /// Maximum duration of conditioning.
    pub condition_max_ns: u64,
    /// Length of the warm-up; for a mail store, its maximum length. The warm-up of a mail store
    /// ends when the cache is full and the log has grown by one checkpoint depth.
    pub warm_up_ns: u64,
    /// Length of the measured phase; with `until_steady`, its maximum length.
    pub measure_ns: u64,
    /// True if the measured phase ends at steady state.
    pub until_steady: bool,
    /// Length of the rounds that the steady-state rule compares.
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
