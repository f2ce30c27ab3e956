//! Reader of a plan as written: values with their positions, and all errors.
//!
//! Each section is declared once as a table of fields (`section!`). It defines the reader, the
//! defaults, the names for "did you mean", and the reference in `docs/plan.md`.

pub(crate) mod list;
pub(crate) mod section;
pub(crate) mod speed;
pub(crate) mod value;
pub(crate) mod word;

use std::ops::Range;

use crate::error::{ERRORS_MAX, PlanError};

/// Position in the plan: field name and text range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    /// Full name of the field.
    pub(crate) field: String,
    /// Byte range in the text. A field that is not written has the range of its section.
    pub(crate) span: Range<usize>,
}

impl Position {
    /// Returns the position of a field in this section.
    pub(crate) fn field(&self, name: &str, span: Range<usize>) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { field: format!("{}{dot}{name}", self.field), span }
    }

    /// Returns the position of a field that is not written: the field's name with the range of the
    /// section.
    pub(crate) fn unwritten(&self, name: &str) -> Self {
        self.field(name, self.span.clone())
    }
}

/// Value with its position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Position in the plan.
    pub(crate) at: Position,
    /// False if the value is a default.
    pub(crate) written: bool,
}

/// Errors collected while reading the text.
#[derive(Debug, Default)]
pub(crate) struct Cx {
    problems: Vec<(Position, String, String)>,
    /// Known fields that were probably meant by an unknown name.
    meant: Vec<String>,
}

impl Cx {
    /// Records an error, unless the field already has one: the first error of a field usually
    /// causes the others.
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

    /// Records a missing field, unless the field is present but unreadable, or misspelt.
    pub(crate) fn missing(&mut self, at: &Position, message: &str, help: impl Into<String>) {
        if self.is_clean(&at.field) && !self.meant.contains(&at.field) {
            self.fail(at, message, help);
        }
    }

    /// Records that an unknown name was probably meant to be this field.
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

    /// Returns true if there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the first [`ERRORS_MAX`] errors in text order, each with its line.
    pub(crate) fn into_errors(mut self, text: &str) -> Vec<PlanError> {
        self.problems.sort_by_key(|(at, _, _)| at.span.start);
        self.problems
            .into_iter()
            .take(ERRORS_MAX)
            .map(|(at, message, help)| PlanError::new(text, &at.span, at.field, message, help))
            .collect()
    }
}
