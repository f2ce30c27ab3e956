//! Rules over the runs of one experiment together.

use plimsoll_evidence::Bundle;

use super::Weight;
use crate::claim::Claim;
use crate::finding::Finding;

pub mod copied;
pub mod few_runs;
pub mod plan_changed;
pub mod spread;
pub mod working_set_grows;

/// A rule over several runs.
#[derive(Clone, Copy)]
pub struct ExperimentRule {
    /// Identifier.
    pub id: &'static str,
    /// The question that it answers, in one line.
    pub asks: &'static str,
    /// Meaning, method and remedy.
    pub explains: &'static str,
    /// The claims that it affects.
    pub bears_on: &'static [(Claim, Weight)],
    /// Checks the runs; `None` if the rule does not apply.
    pub check: fn(&[&Bundle]) -> Option<Finding>,
}

/// All rules, in the order of their report at equal severity.
pub const ALL: &[ExperimentRule] =
    &[plan_changed::RULE, copied::RULE, working_set_grows::RULE, few_runs::RULE, spread::RULE];

/// Returns the findings on these runs, worst first.
pub fn findings(runs: &[&Bundle]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ALL.iter().filter_map(|rule| (rule.check)(runs)).collect();
    findings.sort_by_key(|finding| finding.outcome);
    findings
}
