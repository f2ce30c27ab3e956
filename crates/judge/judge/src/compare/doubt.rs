//! Rules that make a comparison doubtful if they fail in one of its runs, even if the run itself
//! does not claim to be comparable. The user can accept each rule by name.

use plimsoll_evidence::Bundle;

use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::judge::is_accepted;
use crate::rules;
use crate::verdict::Verdict;

/// Returns true if the user accepted the rule of a finding, by the rule's current name or an
/// earlier name.
fn is_accepted_by_name(finding: &Finding, accepted: &[String]) -> bool {
    accepted.iter().any(|id| rules::find(id).is_some_and(|rule| rule.id == finding.rule))
}

/// Returns the finding of a failed rule that refutes the compared figure.
pub(super) fn refuted<'a>(verdict: &'a Verdict, accepted: &[String]) -> Option<&'a Finding> {
    verdict.findings.iter().find(|finding| {
        finding.outcome == Outcome::Fail
            && rules::find(&finding.rule).is_some_and(|rule| rule.refutes(Claim::Comparative))
            && !is_accepted_by_name(finding, accepted)
    })
}

/// Returns the unknown findings of rules that are mandatory for comparisons, except findings that
/// the plan or the command line accepts.
pub(super) fn unknown<'a>(
    bundle: &Bundle,
    verdict: &'a Verdict,
    accepted: &[String],
) -> impl Iterator<Item = &'a Finding> {
    verdict.findings.iter().filter(move |finding| {
        finding.outcome == Outcome::Unknown
            && rules::find(&finding.rule).is_some_and(|rule| rule.mandatory_for(Claim::Comparative))
            && !is_accepted_by_name(finding, accepted)
            && !is_accepted(bundle, &finding.rule)
    })
}
