//! Findings: the results of rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Outcome of a rule. If a check was not made, its outcome must never look like a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The rule failed and refutes the figure.
    Fail,
    /// The evidence is not sufficient for a decision.
    Unknown,
    /// A remark that the reader should know. It never changes a verdict.
    Warn,
    /// The rule checked the figure and found no error.
    Pass,
}

/// Result of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Rule identifier.
    pub rule: String,
    pub outcome: Outcome,
    /// The finding as a sentence with numbers, written for an engineer.
    pub says: String,
    /// Numbers that support the finding, with the unit in the name.
    pub evidence: BTreeMap<String, Value>,
    /// Recommended action; empty for a pass.
    #[serde(rename = "do")]
    pub advice: String,
    /// Declarations of the user that the finding relies on, such as `media hdd`. No measurement
    /// confirms them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<String>,
}

impl Finding {
    /// Creates a finding of `rule` without evidence.
    pub fn new(rule: &str, outcome: Outcome, says: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            outcome,
            says: says.into(),
            evidence: BTreeMap::new(),
            advice: String::new(),
            declared: Vec::new(),
        }
    }

    /// Adds a declaration that the finding relies on.
    #[must_use]
    pub fn as_declared(mut self, what: impl Into<String>) -> Self {
        self.declared.push(what.into());
        self
    }

    /// Adds a number that supports the finding.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the recommended action.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}
