//! The audit: each rule is a pure function of the evidence in a file of its own.
//!
//! A rule has an identifier, the claims that it bears on and whether it is mandatory for them, and
//! the text that `plimsoll audit --explain` prints. Its outcome is pass, warn, fail or unknown, with
//! the numbers it rests on. A rule that does not apply to a run says nothing at all.

use plimsoll_evidence::Bundle;

use crate::claim::Claim;
use crate::finding::Finding;

pub mod check_failed;
pub mod data_content;
pub mod generator_limit;
pub mod io_errors;
pub mod measured_too_short;
pub mod not_completed;
pub mod page_cache_served;
pub mod warm_up_short;
pub mod working_set_stated;

/// Whether a rule decides over a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A failure refutes the claim, unknown leaves it not shown.
    Mandatory,
    /// It is worth saying, and decides nothing.
    Advisory,
}

/// One audit rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Identifier, as in `verdict.json`.
    pub id: &'static str,
    /// What it asks, in one line.
    pub asks: &'static str,
    /// What it means, how it is found, what to do: for `audit --explain`.
    pub explains: &'static str,
    /// The claims it bears on.
    pub bears_on: &'static [(Claim, Weight)],
    /// Looks at the evidence; `None` where the rule does not apply to this run.
    pub check: fn(&Bundle) -> Option<Finding>,
}

impl Rule {
    /// Whether it decides over `claim`.
    pub fn mandatory_for(&self, claim: Claim) -> bool {
        self.bears_on.contains(&(claim, Weight::Mandatory))
    }
}

/// All rules, in the order they are reported where equally bad.
pub const ALL: &[Rule] = &[
    io_errors::RULE,
    check_failed::RULE,
    not_completed::RULE,
    page_cache_served::RULE,
    data_content::RULE,
    generator_limit::RULE,
    measured_too_short::RULE,
    warm_up_short::RULE,
    working_set_stated::RULE,
];

/// The rule of that identifier.
pub fn find(id: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.id == id)
}
