//! Reasons why a plan cannot run on a model.

use plimsoll_workload::planned::PlannedError;
use thiserror::Error;

use crate::spec::ModelError;

/// Error that prevents a run of a plan on a model.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A number in the plan is invalid.
    #[error(transparent)]
    Plan(#[from] PlannedError),
    /// The files of the plan are larger than the modelled system.
    #[error("the model cannot store the files of the plan: {0}")]
    TooLarge(String),
    /// An event names a component that the model does not have.
    #[error("event \"{event}\": the model has no component \"{name}\"")]
    NoSuchComponent {
        event: String,
        /// The component.
        name: String,
        /// Names of the components that the model has.
        known: String,
    },
}
