//! Errors in a plan. Each error states the field, the line and a hint.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use thiserror::Error;

use crate::display_text::mask_login;

/// Error in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanError {
    /// Full name of the field, such as `workload.mailbox.mailbox_size`. It is empty for a syntax
    /// error.
    pub field: String,
    /// Line number in the plan, counted from 1.
    pub line: usize,
    /// Column in the line, in characters, counted from 1.
    pub column: usize,
    /// Length of the marked text in the line, in characters. It is at least 1.
    pub width: usize,
    /// Text of the line. User names and passwords in URLs are masked.
    pub line_text: String,
    /// Description of the error.
    pub message: String,
    /// Hint for the user, in the imperative.
    pub help: String,
}

/// All errors in a plan, in the order of their lines. There is at least one error.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
pub struct PlanErrors {
    /// File name of the plan, or the name of another source.
    pub source_name: String,
    /// The errors.
    pub errors: Vec<PlanError>,
}

/// Maximum number of errors that are recorded. Each error requires a search for its line, so
/// without a limit, a plan with 1 MiB of errors would take hours.
pub(crate) const ERRORS_MAX: usize = 100;
/// Maximum number of errors in the output. A file with more errors is probably not a plan.
const SHOWN_MAX: usize = 20;
/// Maximum number of characters of a line in the output. A longer line is shortened.
const LINE_MAX: usize = 160;

impl PlanError {
    /// Creates an error that marks a byte range of the text.
    #[must_use]
    pub fn new(
        text: &str,
        span: &Range<usize>,
        field: String,
        message: String,
        help: String,
    ) -> Self {
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = floor_boundary(text, span.end).clamp(start, line_end);
        let column = text[line_start..start].chars().count() + 1;
        Self {
            field,
            line: text[..line_start].bytes().filter(|b| *b == b'\n').count() + 1,
            column,
            width: text[start..end].chars().count().max(1),
            line_text: mask_login(text[line_start..line_end].trim_end_matches('\r')),
            message,
            help,
        }
    }

    fn render(&self, source: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.field.is_empty() { "" } else { ": " };
        writeln!(f, "error: {}{colon}{}", self.field, self.message)?;
        let number = self.line.to_string();
        let pad = " ".repeat(number.len());
        writeln!(f, "{pad}--> {source}:{}:{}", self.line, self.column)?;
        // Tabs and control characters would shift the carets or affect the terminal.
        let shown: String = self
            .line_text
            .chars()
            .take(LINE_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        writeln!(f, "{number} | {shown}")?;
        let column = self.column.min(LINE_MAX);
        let carets = "^".repeat(self.width.min(LINE_MAX + 1 - column));
        write!(f, "{pad} | {}{carets} {}", " ".repeat(column - 1), self.help)
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    let mut at = index.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().take(SHOWN_MAX).enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            error.render(&self.source_name, f)?;
        }
        let more = self.errors.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let least = if self.errors.len() < ERRORS_MAX { "" } else { "at least " };
            write!(f, "\n\nand {least}{more} more errors")?;
        }
        Ok(())
    }
}
