//! Error type: a kind, a message and hints.

pub use plimsoll_runner::error::{RunnerError as CliError, engine_error};
