//! Conservation laws: checks whether all figures of a result can be true at the same time.
//!
//! A published result contains no evidence except its figures, but these permit many checks.
//! Bandwidth is rate times size. The number in flight is rate times latency. No operation takes
//! longer than the run. A total is the sum of its parts. Each rule is a pure function of a
//! [`ToolResult`](plimsoll_evidence::tool_result::ToolResult), in its own file, and independent of
//! any tool. Each rule lists the figures that it requires. If they are missing, its outcome is
//! unknown.
//!
//! A finding contains an equation with its numbers. The tolerance is the rounding of the printed
//! figures ([`Span`]). A rule with a larger tolerance states how large it is, and why.

use plimsoll_evidence::tool_result::{MediaClass, ToolResult};
use serde::Serialize;

mod equation;
mod format;
mod headline;
pub mod repeats;
mod span;
pub mod study;
mod verdict;

pub mod rules;

pub use headline::{Headline, headline};
pub use span::Span;
pub use verdict::{Audit, Credibility, UncheckedRule, audit};

/// Facts about the system that the result does not contain and the user therefore states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeclaredFacts {
    /// Rate of the slowest link between the load and the storage, in bytes per second in each
    /// direction.
    pub link_bytes_per_s: Option<f64>,
    /// Number of drives that store the data.
    pub drives: Option<f64>,
    /// Class of the drives.
    pub media: Option<MediaClass>,
    /// Number of operations in flight, summed over all clients.
    pub outstanding: Option<f64>,
    /// Total size of the storage system's caches in bytes.
    pub cache_bytes: Option<f64>,
    /// Total memory of the hosts in bytes.
    pub memory_bytes: Option<f64>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figures contradict each other.
    Impossible,
    /// The figures can be true, but the work was not done by the named storage.
    Invalid,
    /// The figures can be true, but they do not prove the claimed result.
    Doubtful,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Rule identifier.
    pub rule: String,
    #[serde(rename = "gravity")]
    pub severity: Severity,
    /// Sentence that contains the equation with its numbers.
    pub says: String,
    /// Names of the fields that the finding uses. The first field is the most likely to be wrong.
    pub fields: Vec<String>,
    /// Evidence that would answer the question of the rule.
    #[serde(rename = "ask")]
    pub request: String,
}

impl Finding {
    /// Creates a finding that contains only a sentence.
    pub fn new(severity: Severity, says: impl Into<String>) -> Self {
        Self {
            rule: String::new(),
            severity,
            says: says.into(),
            fields: Vec::new(),
            request: String::new(),
        }
    }

    #[must_use]
    pub fn with_fields(mut self, fields: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fields = fields.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the evidence that would answer the question of the rule.
    #[must_use]
    pub fn with_request(mut self, request: impl Into<String>) -> Self {
        self.request = request.into();
        self
    }
}

/// Outcome of one rule: how many checks it made, and its findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleResult {
    /// Number of checks. The rule makes one check for each place of the result that contains the
    /// required figures.
    pub checked: usize,
    pub findings: Vec<Finding>,
}

impl RuleResult {
    /// Counts one check, and adds its finding if there is one.
    pub fn check(&mut self, finding: Option<Finding>) {
        self.checked += 1;
        self.findings.extend(finding);
    }
}

/// Rule that checks one conservation law.
pub struct Rule {
    /// Identifier.
    pub id: &'static str,
    /// Question that the rule answers, in one line.
    pub asks: &'static str,
    /// Explanation: the law, its source, its tolerance, and the meaning of a failure.
    pub explains: &'static str,
    /// Figures that the rule requires, in words for a reader whose result does not contain them.
    pub needs: &'static str,
    pub check: fn(&ToolResult, &DeclaredFacts) -> RuleResult,
}
