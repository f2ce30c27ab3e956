//! Reads the text of a plan. The result contains the values with their positions, and all errors.
//!
//! Each section is declared once as a table of fields (`section!`). This table determines the
//! reader, the defaults, the names that "did you mean" suggests, and the reference in
//! `docs/plan.md`.

pub(crate) mod list;
pub(crate) mod section;
pub(crate) mod speed;
pub(crate) mod value;
pub(crate) mod word;

use std::ops::Range;

use crate::error::{ERRORS_MAX, PlanError};

/// Position in the plan. It consists of the name of a field and a range of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    /// Full name of the field.
    pub(crate) field: String,
    /// Byte range in the text. If the plan does not contain the field, this is the range of its
    /// section.
    pub(crate) span: Range<usize>,
}

impl Position {
    /// Returns the position of a field in this section.
    pub(crate) fn field(&self, name: &str, span: Range<usize>) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { field: format!("{}{dot}{name}", self.field), span }
    }

    /// Returns the position of a field that the plan does not contain. The position consists of the
    /// field's name and the text range of the section.
    pub(crate) fn unwritten(&self, name: &str) -> Self {
        self.field(name, self.span.clone())
    }
}

/// A value and its position in the plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Position of the value in the plan.
    pub(crate) at: Position,
    /// False if the value is a default.
    pub(crate) written: bool,
}

/// Collects the errors while the text is read.
#[derive(Debug, Default)]
pub(crate) struct Cx {
    problems: Vec<(Position, String, String)>,
    /// Known fields for which the author probably wrote an unknown name by mistake.
    meant: Vec<String>,
}

impl Cx {
    /// Records an error, unless the field already has an error. The first error of a field usually
    /// causes the later errors.
    pub(crate) fn fail(
        &mut self,
        at: &Position,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.problems.iter().all(|(p, _, _)| p.field.is_empty() || p.field != at.field) {
            self.problems.push((at.clone(), message.into(), help.into()));
        }
    }

    /// Records that a field is missing. Records nothing if the field is present but cannot be read,
    /// or if its name is misspelt.
    pub(crate) fn missing(&mut self, at: &Position, message: &str, help: impl Into<String>) {
        if self.is_clean(&at.field) && !self.meant.contains(&at.field) {
            self.fail(at, message, help);
        }
    }

    /// Stores the field that the author probably meant when writing an unknown name.
    pub(crate) fn meant(&mut self, field: String) {
        self.meant.push(field);
    }

    /// Returns true if neither the field nor any of its subfields has an error.
    pub(crate) fn is_clean(&self, field: &str) -> bool {
        !self.problems.iter().any(|(p, _, _)| {
            p.field.strip_prefix(field).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        })
    }

    /// Returns true if no errors were recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the first [`ERRORS_MAX`] errors in the order of the text, each with its line.
    pub(crate) fn into_errors(mut self, text: &str) -> Vec<PlanError> {
        self.problems.sort_by_key(|(at, _, _)| at.span.start);
        self.problems
            .into_iter()
            .take(ERRORS_MAX)
            .map(|(at, message, help)| PlanError::new(text, &at.span, at.field, message, help))
            .collect()
    }
}
