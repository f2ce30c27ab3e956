//! Rules that judge all runs of one experiment together.

use plimsoll_evidence::Bundle;

use super::Weight;
use crate::claim::Claim;
use crate::finding::Finding;

pub mod copied;
pub mod few_runs;
pub mod plan_changed;
pub mod spread;
pub mod working_set_grows;

/// Rule that judges several runs together.
#[derive(Clone, Copy)]
pub struct ExperimentRule {
    /// Identifier.
    pub id: &'static str,
    /// Question that the rule answers, in one line.
    pub asks: &'static str,
    /// Explanation: what the rule means, how it works, and how to correct the run.
    pub explains: &'static str,
    /// Claims that the rule affects.
    pub bears_on: &'static [(Claim, Weight)],
    /// Function that checks the runs. It returns `None` if the rule does not apply.
    pub check: fn(&[&Bundle]) -> Option<Finding>,
}

/// All rules. Findings of equal severity are reported in this order.
pub const ALL: &[ExperimentRule] =
    &[plan_changed::RULE, copied::RULE, working_set_grows::RULE, few_runs::RULE, spread::RULE];

/// Returns the findings on these runs, with the worst first.
pub fn findings(runs: &[&Bundle]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ALL.iter().filter_map(|rule| (rule.check)(runs)).collect();
    findings.sort_by_key(|finding| finding.outcome);
    findings
}
