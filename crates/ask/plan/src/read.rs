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
    /// Byte range in the text. For a field that is not written, that of its section.
    pub(crate) span: Range<usize>,
}

impl Position {
    /// Returns the position of a field in this section.
    pub(crate) fn field(&self, name: &str, span: Range<usize>) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { field: format!("{}{dot}{name}", self.field), span }
    }

    /// Returns the position of a field that is not written: its own name with the section's range.
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
    /// False for a default.
    pub(crate) written: bool,
}

/// Errors collected while reading the text.
#[derive(Debug, Default)]
pub(crate) struct Cx {
    problems: Vec<(Position, String, String)>,
    /// Known fields that an unknown name probably meant.
    meant: Vec<String>,
}

impl Cx {
    /// Records an error. A field has at most one: the first usually causes the others.
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

    /// Records a missing field, unless it is present but unreadable or misspelt.
    pub(crate) fn missing(&mut self, at: &Position, message: &str, help: impl Into<String>) {
        if self.is_clean(&at.field) && !self.meant.contains(&at.field) {
            self.fail(at, message, help);
        }
    }

    /// Records that an unknown name probably meant this field.
    pub(crate) fn meant(&mut self, field: String) {
        self.meant.push(field);
    }

    /// True if neither the field nor its subfields have errors.
    pub(crate) fn is_clean(&self, field: &str) -> bool {
        !self.problems.iter().any(|(p, _, _)| {
            p.field.strip_prefix(field).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        })
    }

    /// True if there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the first [`ERRORS_MAX`] errors with their lines, in text order.
    pub(crate) fn into_errors(mut self, text: &str) -> Vec<PlanError> {
        self.problems.sort_by_key(|(at, _, _)| at.span.start);
        self.problems
            .into_iter()
            .take(ERRORS_MAX)
            .map(|(at, message, help)| PlanError::new(text, &at.span, at.field, message, help))
            .collect()
    }
}
