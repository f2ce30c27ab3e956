//! What is wrong with a plan: each problem with its field, line, the line itself and what to do.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use thiserror::Error;

/// One problem in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanError {
    /// Full name of the field, such as `workload.mailbox.mailbox_size`; empty for a syntax error.
    pub field: String,
    /// Line in the plan, from 1.
    pub line: usize,
    /// Column in the line, in characters from 1.
    pub column: usize,
    /// Characters that the problem covers in the line, at least 1.
    pub width: usize,
    /// The line as written.
    pub line_text: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Everything that is wrong with a plan, in the order of the lines; never empty.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
pub struct PlanErrors {
    /// Name of the plan's file, or what stands for it.
    pub source_name: String,
    /// The problems.
    pub errors: Vec<PlanError>,
}

/// Problems shown at most: beyond that a plan is most likely not a plan.
const SHOWN_MAX: usize = 20;
/// Characters of a line shown at most.
const LINE_MAX: usize = 160;

impl PlanError {
    /// A problem at a byte range of the text.
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
            line_text: text[line_start..line_end].trim_end_matches('\r').to_owned(),
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
        // Tabs and control characters would shift the carets or act on a terminal.
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
            write!(f, "\n\nand {more} more")?;
        }
        Ok(())
    }
}
