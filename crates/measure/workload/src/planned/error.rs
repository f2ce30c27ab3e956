//! Errors of a plan's workload.

use plimsoll_sys::SysError;

/// Reason why a plan's workload is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannedError {
    /// Numbers in the plan are invalid for the workload.
    #[error("{0}")]
    Numbers(String),
    /// The file with recorded arrivals cannot be read.
    #[error("cannot read recorded arrivals: {0}")]
    Arrivals(SysError),
}

impl PlannedError {
    /// Creates the error for numbers that the workload rejects, with the message of the workload.
    pub fn numbers(says: impl std::fmt::Display) -> Self {
        Self::Numbers(says.to_string())
    }
}
