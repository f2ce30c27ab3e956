//! Why a plan's workload can't be.

use plimsoll_sys::SysError;

/// Why a plan's workload can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannedError {
    /// Numbers that the workload can't take.
    #[error("{0}")]
    Numbers(String),
    /// Recorded arrivals can't be read.
    #[error("reading recorded arrivals: {0}")]
    Arrivals(SysError),
}

impl PlannedError {
    /// Numbers that the workload refuses, in its own words.
    pub fn numbers(says: impl std::fmt::Display) -> Self {
        Self::Numbers(says.to_string())
    }
}
