//! What stands against a comparison in the runs that it is made of: rules that bear on it, whatever a run itself
//! claims. Each is accepted by its name.

use plimsoll_evidence::Bundle;

use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::judge::is_accepted;
use crate::rules;
use crate::verdict::Verdict;

/// Whether the user accepts a rule's finding, by its name or by an earlier one.
fn is_taken(finding: &Finding, accepted: &[String]) -> bool {
    accepted.iter().any(|id| rules::find(id).is_some_and(|rule| rule.id == finding.rule))
}

/// A failed rule that refutes a comparison: the figure is not what it claims to be.
pub(super) fn refuted<'a>(verdict: &'a Verdict, accepted: &[String]) -> Option<&'a Finding> {
    verdict.findings.iter().find(|finding| {
        finding.outcome == Outcome::Fail
            && rules::find(&finding.rule).is_some_and(|rule| rule.refutes(Claim::Comparative))
            && !is_taken(finding, accepted)
    })
}

/// Rules that have to be known for a comparison and are not, unless the run's own plan accepts them so.
pub(super) fn unknown<'a>(
    bundle: &Bundle,
    verdict: &'a Verdict,
    accepted: &[String],
) -> impl Iterator<Item = &'a Finding> {
    verdict.findings.iter().filter(move |finding| {
        finding.outcome == Outcome::Unknown
            && rules::find(&finding.rule).is_some_and(|rule| rule.mandatory_for(Claim::Comparative))
            && !is_taken(finding, accepted)
            && !is_accepted(bundle, &finding.rule)
    })
}
