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
    /// What it asks, in one line.
    pub asks: &'static str,
    /// What it means, how it is found, what to do.
    pub explains: &'static str,
    /// The claims it bears on.
    pub bears_on: &'static [(Claim, Weight)],
    /// Looks at the runs; `None` where the rule does not apply.
    pub check: fn(&[&Bundle]) -> Option<Finding>,
}

/// All of them, in the order they are reported where equally bad.
pub const ALL: &[ExperimentRule] =
    &[plan_changed::RULE, copied::RULE, working_set_grows::RULE, few_runs::RULE, spread::RULE];

/// What they find in these runs, worst first.
pub fn findings(runs: &[&Bundle]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ALL.iter().filter_map(|rule| (rule.check)(runs)).collect();
    findings.sort_by_key(|finding| finding.outcome);
    findings
}
