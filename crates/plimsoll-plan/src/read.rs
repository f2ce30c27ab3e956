//! Reading a plan as written: values with their places, all problems collected.
//!
//! Each section is one table of fields (`section!`) that feeds the reader, the defaults, the list of
//! known names for "did you mean", and the reference in `docs/plan.md`.

pub(crate) mod list;
pub(crate) mod section;
pub(crate) mod speed;
pub(crate) mod value;
pub(crate) mod word;

use std::ops::Range;

use crate::error::PlanError;

/// A place in the plan: which field, and where in the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    /// Full name of the field.
    pub(crate) field: String,
    /// Bytes of the text. A field that is not written has the place of its section.
    pub(crate) span: Range<usize>,
}

impl At {
    /// The place of a field of this section.
    pub(crate) fn field(&self, name: &str, span: Range<usize>) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self { field: format!("{}{dot}{name}", self.field), span }
    }

    /// The place of a field that is not written: its own name, its section's place.
    pub(crate) fn unwritten(&self, name: &str) -> Self {
        self.field(name, self.span.clone())
    }
}

/// A value and where it was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given<T> {
    /// The value.
    pub(crate) value: T,
    /// Where.
    pub(crate) at: At,
    /// False for a default.
    pub(crate) written: bool,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Cx {
    problems: Vec<(At, String, String)>,
    /// Fields that an unknown name was most likely meant to be.
    meant: Vec<String>,
}

impl Cx {
    /// Notes a problem. One field has at most one: the first is the cause of the others.
    pub(crate) fn fail(&mut self, at: &At, message: impl Into<String>, help: impl Into<String>) {
        if self.problems.iter().all(|(p, _, _)| p.field.is_empty() || p.field != at.field) {
            self.problems.push((at.clone(), message.into(), help.into()));
        }
    }

    /// Notes that a field is not there, unless it is but unreadable or misspelt.
    pub(crate) fn missing(&mut self, at: &At, message: &str, help: impl Into<String>) {
        if self.is_clean(&at.field) && !self.meant.contains(&at.field) {
            self.fail(at, message, help);
        }
    }

    /// Notes that an unknown name was most likely meant to be this field.
    pub(crate) fn meant(&mut self, field: String) {
        self.meant.push(field);
    }

    /// True when no problem lies in the field or below it.
    pub(crate) fn is_clean(&self, field: &str) -> bool {
        !self.problems.iter().any(|(p, _, _)| {
            p.field.strip_prefix(field).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        })
    }

    /// True when there is no problem at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The problems with their lines, in the order of the text.
    pub(crate) fn into_errors(mut self, text: &str) -> Vec<PlanError> {
        self.problems.sort_by_key(|(at, _, _)| at.span.start);
        self.problems
            .into_iter()
            .map(|(at, message, help)| PlanError::new(text, &at.span, at.field, message, help))
            .collect()
    }
}
