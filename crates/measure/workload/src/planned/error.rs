//! Errors in the workload of a plan.

use plimsoll_sys::SysError;

/// Reason why the workload of a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannedError {
    /// The workload rejects a number in the plan.
    #[error("{0}")]
    Numbers(String),
    /// A file of recorded arrivals cannot be read.
    #[error("cannot read recorded arrivals: {0}")]
    Arrivals(SysError),
}

impl PlannedError {
    /// Creates the error for a number that the workload rejects. The error contains the message of
    /// the workload.
    pub fn numbers(says: impl std::fmt::Display) -> Self {
        Self::Numbers(says.to_string())
    }
}
