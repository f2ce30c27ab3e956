//! Findings: what a rule says of the evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The outcome of a rule. Not checked never looks like passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The figure is not what it claims to be.
    Fail,
    /// The evidence does not tell.
    Unknown,
    /// Worth knowing; never changes a verdict.
    Warn,
    /// Checked, and as it should be.
    Pass,
}

/// What one rule found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Identifier of the rule.
    pub rule: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The sentence that an engineer reads, with numbers.
    pub says: String,
    /// The numbers it rests on, with the unit in the name.
    pub evidence: BTreeMap<String, Value>,
    /// What to do about it; empty for a pass.
    #[serde(rename = "do")]
    pub advice: String,
    /// What the user declared and this rests on, such as `media hdd`. Nobody measured it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<String>,
}

impl Finding {
    /// A finding of `rule` with nothing in evidence yet.
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

    /// Says that it rests on something that the user declared.
    #[must_use]
    pub fn as_declared(mut self, what: impl Into<String>) -> Self {
        self.declared.push(what.into());
        self
    }

    /// Adds a number that the finding rests on.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}
