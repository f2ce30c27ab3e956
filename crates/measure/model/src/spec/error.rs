//! Errors in model files.

use thiserror::Error;

/// Reason why a model could not be loaded or built.
#[derive(Debug, Error, PartialEq)]
pub enum ModelError {
    /// There is no file at this path, and no shipped model with this name.
    #[error("there is no model `{name}`; use the path of a model file, or one of: {known}{}", meant(.nearest))]
    NoSuchModel {
        /// Requested name.
        name: String,
        /// Names of the shipped models.
        known: String,
        /// Name of the shipped model with the most similar name; `None` if no name is similar.
        nearest: Option<String>,
    },
    /// The file could not be read.
    #[error("cannot read the model file {path}: {reason}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Message of the operating system.
        reason: String,
    },
    /// The file is not valid TOML.
    #[error("{model} is not valid TOML: {reason}")]
    Syntax {
        /// Name or path of the model.
        model: String,
        /// Message of the TOML parser, which contains the line.
        reason: String,
    },
    /// An unknown field.
    #[error("{model}{}: `{place}` has no field `{field}`{}", place_in_file(.line), meant(.nearest))]
    UnknownField {
        /// Name or path of the model.
        model: String,
        /// Line in the file; `None` if the field was not set in the file, or cannot be found.
        line: Option<usize>,
        /// Name of the table that contains the field.
        place: String,
        field: String,
        /// Known field with the most similar name; `None` if no name is similar.
        nearest: Option<String>,
    },
    /// A required field is missing.
    #[error("{model}: `{place}` lacks the required field `{field}` ({why})")]
    Missing {
        /// Name or path of the model.
        model: String,
        /// Name of the table that lacks the field.
        place: String,
        field: String,
        /// Text that explains the purpose of the field.
        why: String,
    },
    /// The value of a field is invalid.
    #[error("{model}{}: `{place}.{field}` {reason}", place_in_file(.line))]
    Bad {
        /// Name or path of the model.
        model: String,
        /// Line in the file; `None` if the field was not set in the file, or cannot be found.
        line: Option<usize>,
        /// Name of the table that contains the field.
        place: String,
        field: String,
        /// Text that describes the problem and the accepted values.
        reason: String,
    },
}

fn place_in_file(line: &Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn meant(name: &Option<String>) -> String {
    name.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

/// Returns the candidate that is most similar to `name`; `None` if no candidate is similar enough.
pub(crate) fn most_like<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(name, c), c))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c.to_owned())
}
