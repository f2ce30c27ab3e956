//! Error type: a kind, a message and hints.

use std::path::Path;

use plimsoll_plan::{PlanErrors, gallery_plan};
pub use plimsoll_runner::error::{RunnerError as CliError, engine_error};

/// Converts a plan's errors to a message.
pub fn plan_error(errors: &PlanErrors) -> CliError {
    // The text already begins with "error:".
    let text = errors.to_string();
    let error = CliError::usage(text.trim_end().trim_start_matches("error: ").to_owned());
    let name = errors.source_name.as_str();
    if gallery_plan(name).is_none() || Path::new(name).is_file() {
        return error;
    }
    // The user cannot edit a built-in plan.
    error.hint(format!(
        "{name} is a built-in plan: change a field with --set FIELD=VALUE, remove a field with \
         --set FIELD=, or edit a copy: plimsoll plan show {name} > my.toml"
    ))
}
