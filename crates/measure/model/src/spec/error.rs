//! Errors in model files.

use thiserror::Error;

/// Why a model could not be loaded or built.
#[derive(Debug, Error, PartialEq)]
pub enum ModelError {
    /// No file and no shipped model of that name.
    #[error("there is no model `{name}`; give a path to a model file, or one of: {known}{}", meant(.nearest))]
    NoSuchModel {
        /// Requested name.
        name: String,
        /// The shipped models.
        known: String,
        /// The shipped model whose name is nearest.
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
    /// The file is not TOML.
    #[error("{model} is not valid TOML: {reason}")]
    Syntax {
        /// Name or path of the model.
        model: String,
        /// Message of the parser, with the line.
        reason: String,
    },
    /// A field that nothing reads.
    #[error("{model}{}: `{place}` has no field `{field}`{}", place_in_file(.line), meant(.nearest))]
    UnknownField {
        /// Name or path of the model.
        model: String,
        /// Line in the file; `None` if the field was set from outside it, or cannot be found.
        line: Option<usize>,
        /// Table that holds it.
        place: String,
        /// The field.
        field: String,
        /// The known field whose name is nearest.
        nearest: Option<String>,
    },
    /// A field that has to be there is not.
    #[error("{model}: `{place}` needs the field `{field}` ({why})")]
    Missing {
        /// Name or path of the model.
        model: String,
        /// Table that lacks it.
        place: String,
        /// The field.
        field: String,
        /// Purpose of the field.
        why: String,
    },
    /// A field that has a value which cannot be.
    #[error("{model}{}: `{place}.{field}` {reason}", place_in_file(.line))]
    Bad {
        /// Name or path of the model.
        model: String,
        /// Line in the file; `None` if the field was set from outside it, or cannot be found.
        line: Option<usize>,
        /// Table that holds it.
        place: String,
        /// The field.
        field: String,
        /// The problem and the accepted values.
        reason: String,
    },
}

fn place_in_file(line: &Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn meant(name: &Option<String>) -> String {
    name.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

/// The candidate most like `name`, if any is alike enough to be meant.
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
