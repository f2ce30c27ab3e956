//! Rules that make a comparison doubtful if they fail in one of its runs, even if that run makes no
//! such claim. The user can accept each by name.

use plimsoll_evidence::Bundle;

use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::judge::is_accepted;
use crate::rules;
use crate::verdict::Verdict;

/// Returns true if the user accepts a finding, by the rule's current or an earlier name.
fn is_accepted_by_name(finding: &Finding, accepted: &[String]) -> bool {
    accepted.iter().any(|id| rules::find(id).is_some_and(|rule| rule.id == finding.rule))
}

/// Returns a failed rule that refutes the comparison: the figure is not what it claims to be.
pub(super) fn refuted<'a>(verdict: &'a Verdict, accepted: &[String]) -> Option<&'a Finding> {
    verdict.findings.iter().find(|finding| {
        finding.outcome == Outcome::Fail
            && rules::find(&finding.rule).is_some_and(|rule| rule.refutes(Claim::Comparative))
            && !is_accepted_by_name(finding, accepted)
    })
}

/// Returns rules that a comparison requires and that are unknown, unless the run's own plan accepts
/// them as unknown.
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
