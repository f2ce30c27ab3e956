//! Claims of a run, and their support by the findings.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Tier;

use crate::claim::{Claim, ClaimStatus};
use crate::finding::{Finding, Outcome};
use crate::rules::{self, Rule};

/// Returns the claims of the run. A stated requirement is always a claim.
pub(super) fn claims_of(bundle: &Bundle) -> Vec<Claim> {
    let mut claimed = bundle.plan.claims.clone();
    if bundle.plan.requirement.is_some() && !claimed.contains(&Claim::Requirement) {
        claimed.push(Claim::Requirement);
    }
    claimed
}

/// Returns the user's declarations on which a claim relies, from all rules that affect the claim.
fn declarations_for(findings: &[Finding], claim: Claim) -> impl Iterator<Item = &String> {
    let bears = move |finding: &&Finding| {
        rules::find(&finding.rule).is_some_and(|rule| rule.bears_on(claim))
    };
    findings.iter().filter(bears).flat_map(|finding| &finding.declared)
}

/// Returns the user's declarations on which any claim relies, without duplicates.
pub(super) fn declarations(findings: &[Finding], claimed: &[Claim]) -> Vec<String> {
    let mut declared: Vec<String> =
        claimed.iter().flat_map(|&claim| declarations_for(findings, claim)).cloned().collect();
    declared.sort_unstable();
    declared.dedup();
    declared
}

/// Returns the mandatory rules of a claim with their findings.
pub(super) fn mandatory(
    findings: &[Finding],
    claim: Claim,
) -> impl Iterator<Item = (&'static Rule, &Finding)> {
    findings.iter().filter_map(move |finding| {
        let rule = rules::find(&finding.rule)?;
        rule.mandatory_for(claim).then_some((rule, finding))
    })
}

/// Returns true if a finding is a failure that refutes a claim.
pub(super) fn refutes(finding: &Finding, claim: Claim) -> bool {
    finding.outcome == Outcome::Fail
        && rules::find(&finding.rule).is_some_and(|rule| rule.refutes(claim))
}

/// Returns the support of each claim. The claims of the run are always included; other claims are
/// included if a rule affects them.
pub(super) fn claim_statuses(
    findings: &[Finding],
    claimed: &[Claim],
    tier: Tier,
) -> BTreeMap<Claim, ClaimStatus> {
    /// Claims that a result file alone can never support.
    const NOT_FROM_A_FILE: [Claim; 4] =
        [Claim::MediaRead, Claim::DurableWrite, Claim::TailLatency, Claim::SustainedWrite];
    let status = |claim: Claim| {
        let of_claim: Vec<&Finding> = mandatory(findings, claim).map(|(_, f)| f).collect();
        let any = |outcome| of_claim.iter().any(|finding| finding.outcome == outcome);
        if findings.iter().any(|finding| refutes(finding, claim)) {
            return ClaimStatus::Refuted;
        }
        let unshown = of_claim.is_empty()
            || any(Outcome::Unknown)
            || tier == Tier::T3 && NOT_FROM_A_FILE.contains(&claim)
            || !has_specific_proof(findings, claim);
        if unshown {
            ClaimStatus::NotShown
        } else if declarations_for(findings, claim).next().is_some() {
            ClaimStatus::AsDeclared
        } else {
            ClaimStatus::Believable
        }
    };
    let shown = [Claim::Requirement, Claim::MediaRead, Claim::SustainedWrite, Claim::DurableWrite];
    Claim::ALL
        .iter()
        .copied()
        .filter(|claim| {
            claimed.contains(claim) || shown.contains(claim) || *claim == Claim::TailLatency
        })
        .map(|claim| (claim, status(claim)))
        .collect()
}

/// Returns the rules that are specific to a claim. At least one of these rules must pass, because
/// rules that only detect errors do not prove a claim. The result is empty if the claim needs no
/// specific rule, such as the requirement.
pub(super) fn specific_rules(claim: Claim) -> &'static [&'static str] {
    match claim {
        Claim::Requirement | Claim::Comparative => &[],
        Claim::MediaRead => &[rules::served_from_cache_below::RULE.id],
        Claim::CachedRead => &[rules::cached_read::RULE.id],
        Claim::SustainedWrite => &[rules::conditioned::RULE.id],
        Claim::BurstWrite => &[rules::conditioned::RULE.id, rules::write_cache::RULE.id],
        Claim::DurableWrite => &[rules::volatile_cache_unflushed::RULE.id],
        Claim::TailLatency => &[rules::percentile_samples::RULE.id],
        Claim::InMemory => &[rules::in_memory::RULE.id],
        Claim::TraceReplay => &[rules::replay::other::RULE.id],
    }
}

/// Returns true if a specific rule supports the claim, or if the claim needs no specific rule.
fn has_specific_proof(findings: &[Finding], claim: Claim) -> bool {
    let own = specific_rules(claim);
    own.is_empty()
        || findings.iter().any(|f| own.contains(&f.rule.as_str()) && f.outcome == Outcome::Pass)
}
