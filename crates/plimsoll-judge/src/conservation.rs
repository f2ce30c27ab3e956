//! Conservation: can the figures of a result all be true at once?
//!
//! A result made elsewhere leaves no evidence but its figures. Much can still be asked of them:
//! bandwidth is rate times size, what is in flight is rate times latency, no operation lasts longer than
//! the run, a total is the sum of its parts. Each rule is a pure function of a
//! [`ToolResult`](plimsoll_evidence::tool_result::ToolResult) in a file of its own; it knows no tool. A rule says
//! which figures it needs, and where they are not there the answer is that it cannot be known.
//!
//! An accusation is an equation with its numbers. Tolerances are the rounding of the printed figures
//! ([`Span`]); where a rule allows more, it states how much and why.

use plimsoll_evidence::tool_result::{MediaClass, ToolResult};
use serde::Serialize;

mod equation;
mod headline;
pub mod repeats;
mod span;
pub mod study;
mod verdict;
mod words;

pub mod rules;

pub use headline::{Headline, headline};
pub use span::Span;
pub use verdict::{Audit, Credibility, Unknown, audit};

/// What the reader of a result declares about the system, which the result does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Declared {
    /// Rate of the slowest link between the load and the storage, bytes per second in each direction.
    pub link_bytes_per_s: Option<f64>,
    /// Drives that the data lies on.
    pub drives: Option<f64>,
    /// What they are.
    pub media: Option<MediaClass>,
    /// Operations in flight, all clients together.
    pub outstanding: Option<f64>,
    /// Caches of the storage system, bytes.
    pub cache_bytes: Option<f64>,
    /// Memory of the hosts, bytes, all together.
    pub memory_bytes: Option<f64>,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gravity {
    /// Not all of the figures can be true.
    Impossible,
    /// They can, but the storage that the result names did not do the work.
    Invalid,
    /// They can, but do not show what they seem to show.
    Doubtful,
}

/// What a rule found against a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Identifier of the rule.
    pub rule: String,
    /// How much it weighs.
    pub gravity: Gravity,
    /// The sentence with the arithmetic in it.
    pub says: String,
    /// The fields that it rests on; the ones that are likeliest to be wrong first.
    pub fields: Vec<String>,
    /// What would settle it.
    pub ask: String,
}

impl Finding {
    /// A finding of nothing but its sentence.
    pub fn new(gravity: Gravity, says: impl Into<String>) -> Self {
        Self {
            rule: String::new(),
            gravity,
            says: says.into(),
            fields: Vec::new(),
            ask: String::new(),
        }
    }

    /// Names the fields.
    #[must_use]
    pub fn of(mut self, fields: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fields = fields.into_iter().map(Into::into).collect();
        self
    }

    /// Says what would settle it.
    #[must_use]
    pub fn ask(mut self, ask: impl Into<String>) -> Self {
        self.ask = ask.into();
        self
    }
}

/// What a rule saw: how many times it could be applied, and what it found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Times that the figures that it needs were there.
    pub checked: usize,
    /// What it found.
    pub findings: Vec<Finding>,
}

impl Seen {
    /// Counts one check, and keeps what it found.
    pub fn check(&mut self, finding: Option<Finding>) {
        self.checked += 1;
        self.findings.extend(finding);
    }
}

/// One rule of conservation.
pub struct Rule {
    /// Identifier.
    pub id: &'static str,
    /// What it asks, in one line.
    pub asks: &'static str,
    /// The law, its source, its tolerance, and what a failure means.
    pub explains: &'static str,
    /// The figures that it needs, as the reader is told where they are not there.
    pub needs: &'static str,
    /// Looks at a result.
    pub check: fn(&ToolResult, &Declared) -> Seen,
}
