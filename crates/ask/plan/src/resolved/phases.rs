//! Settings of the phases, and the number of runs.

use serde::{Deserialize, Serialize};

use super::words::{CacheState, Condition};

/// The phases of a run, and their lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// State of the caches at the start of the measured phase.
    pub cache: CacheState,
    /// Preconditioning: writes that bring flash to a steady state before the measurement.
    pub condition: Condition,
    /// Maximum duration of the writes that `condition` requires.
    pub condition_max_ns: u64,
    /// Length of the warm-up. For a mail store, this is the maximum length: its warm-up ends when
    /// the cache is full and the log has grown by one checkpoint depth.
    pub warm_up_ns: u64,
    /// Length of the measured phase. If `until_steady` is true, this is the maximum length.
    pub measure_ns: u64,
    /// True if the measured phase ends when the rate is steady.
    pub until_steady: bool,
    /// Length of a round. The steady-state rule compares the rates of successive rounds.
    pub round_ns: u64,
    /// True if Plimsoll reads and checks all data at the end.
    pub verify: bool,
}

/// Number of runs. Also states whether the runs reuse data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Number of runs for each target.
    pub runs: u32,
    /// True if each run creates new data. False if all runs use the same data.
    pub fresh: bool,
}
