//! The verdict on a run: rules, checks, claims, and their precedence. A pure function of the bundle.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind, Tier};
use plimsoll_plan::Requirement;

use crate::checks;
use crate::claim::{Claim, Standing};
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::rules::{self, Rule, generator_limit};
use crate::verdict::{Check, RULES_VERSION, Verdict, VerdictKind};

/// Judges a run.
pub fn judge(bundle: &Bundle) -> Verdict {
    let mut findings: Vec<Finding> =
        rules::ALL.iter().filter_map(|rule| (rule.check)(bundle)).collect();
    let claimed = bundle.plan.claims.clone();
    let requirement = bundle.plan.requirement.as_ref();
    let checks = requirement.map_or_else(Vec::new, |r| checks::all(bundle, r));
    let required = requirement.and_then(|r| r.iops_per_s);
    let achieved = figures::rate_per_s(bundle, Pick::Transactional);
    let headroom = match (achieved, required) {
        (Some(achieved), Some(required)) if required > 0.0 && !checks::open_loop(bundle) => {
            Some(achieved / required - 1.0)
        }
        _ => None,
    };
    let claims = standings(&findings, &claimed, bundle.run.tier);
    let (verdict, reason) = decide(bundle, requirement, &findings, &claimed, &checks, headroom);
    // A figure of a model must never be taken for one of real storage, wherever the sentence goes.
    let modelled = bundle.run.driver == Driver::Model;
    let reason = if modelled { format!("modelled: {reason}") } else { reason };
    findings.sort_by_key(|finding| finding.outcome);
    let (passed, findings): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.outcome == Outcome::Pass);
    Verdict {
        verdict,
        reason,
        demonstration: bundle.plan.demonstration,
        required_iops_per_s: required,
        achieved_iops_per_s: achieved,
        headroom,
        checks,
        claims: claims.into_iter().map(|(c, standing)| (c.word().to_owned(), standing)).collect(),
        tier: bundle.run.tier,
        findings,
        passed: passed.into_iter().map(|finding| finding.rule).collect(),
        rules_version: RULES_VERSION,
        run_id: bundle.run.run_id.clone(),
    }
}

/// Outcomes of the mandatory rules of a claim.
fn mandatory(
    findings: &[Finding],
    claim: Claim,
) -> impl Iterator<Item = (&'static Rule, &Finding)> {
    findings.iter().filter_map(move |finding| {
        let rule = rules::find(&finding.rule)?;
        rule.mandatory_for(claim).then_some((rule, finding))
    })
}

/// Where each claim stands. The claims made are always shown; the others where a rule bears on them.
fn standings(findings: &[Finding], claimed: &[Claim], tier: Tier) -> BTreeMap<Claim, Standing> {
    /// T3, a result file alone, can never support these (DESIGN §1).
    const NOT_FROM_A_FILE: [Claim; 4] =
        [Claim::MediaRead, Claim::DurableWrite, Claim::TailLatency, Claim::SustainedWrite];
    let standing = |claim: Claim| {
        let outcomes: Vec<Outcome> = mandatory(findings, claim).map(|(_, f)| f.outcome).collect();
        if outcomes.contains(&Outcome::Fail) {
            return Standing::Refuted;
        }
        let unshown = outcomes.is_empty()
            || outcomes.iter().any(|o| matches!(o, Outcome::Unknown))
            || tier == Tier::T3 && NOT_FROM_A_FILE.contains(&claim)
            || !proved_by_a_rule_of_its_own(findings, claim);
        if unshown { Standing::NotShown } else { Standing::Believable }
    };
    let shown = [Claim::Requirement, Claim::MediaRead, Claim::SustainedWrite, Claim::DurableWrite];
    Claim::ALL
        .iter()
        .copied()
        .filter(|claim| {
            claimed.contains(claim) || shown.contains(claim) || *claim == Claim::TailLatency
        })
        .map(|claim| (claim, standing(claim)))
        .collect()
}

/// Rules that only ask whether nothing went wrong don't show a claim. Each claim but the requirement
/// needs a rule that looked for it in particular, and passed.
fn proved_by_a_rule_of_its_own(findings: &[Finding], claim: Claim) -> bool {
    let own: &[&str] = match claim {
        Claim::Requirement | Claim::Comparative => return true,
        Claim::MediaRead | Claim::CachedRead => &["served-from-cache-below"],
        Claim::SustainedWrite => &["conditioned"],
        Claim::BurstWrite => &["conditioned", "write-cache"],
        Claim::DurableWrite => &["volatile-cache-unflushed"],
        Claim::TailLatency => &["percentile-samples"],
        Claim::InMemory => &["in-memory-shown"],
    };
    findings.iter().any(|f| own.contains(&f.rule.as_str()) && f.outcome == Outcome::Pass)
}

/// Rules whose unknown leaves a run undecided whatever is claimed: it was not carried out as planned.
const ALWAYS_DECIDE: [&str; 4] =
    ["measured-too-short", "not-completed", "check-failed", "never-settled"];

fn decide(
    bundle: &Bundle,
    requirement: Option<&Requirement>,
    findings: &[Finding],
    claimed: &[Claim],
    checks: &[Check],
    headroom: Option<f64>,
) -> (VerdictKind, String) {
    let worst = |outcome| {
        claimed
            .iter()
            .flat_map(|&claim| mandatory(findings, claim))
            .find(|(_, finding)| finding.outcome == outcome)
            .map(|(_, finding)| finding.says.clone())
    };
    if let Some(says) = worst(Outcome::Fail) {
        return (VerdictKind::Invalid, says);
    }
    if bundle.run.end.kind == EndKind::Interrupted {
        return (VerdictKind::Inconclusive, bundle.run.end.says.clone());
    }
    let failed: Vec<String> = checks.iter().filter(|c| c.ok == Some(false)).map(says).collect();
    if !failed.is_empty() {
        let reason = failed.join("; ");
        if generator_limit::at_limit(bundle) {
            let reason = format!("{reason}; but the load generator itself was at its limit");
            return (VerdictKind::Inconclusive, reason);
        }
        return (VerdictKind::Fail, reason);
    }
    let unknown = claimed.iter().flat_map(|&claim| mandatory(findings, claim)).find(|(rule, f)| {
        // Who claims must show; a plan that only measures is told what it does not show.
        let decides = !bundle.plan.claims_assumed || ALWAYS_DECIDE.contains(&rule.id);
        f.outcome == Outcome::Unknown && decides
    });
    if let Some((_, finding)) = unknown {
        return (VerdictKind::Inconclusive, finding.says.clone());
    }
    let open: Vec<String> = checks.iter().filter(|c| c.ok.is_none()).map(undecided).collect();
    if !open.is_empty() {
        return (VerdictKind::Inconclusive, open.join("; "));
    }
    match requirement {
        None => (VerdictKind::Measured, "no requirement was stated".to_owned()),
        Some(_) => {
            let every = format!("all {} checks keep their limits", checks.len());
            let reason = match headroom {
                Some(h) if h >= 9.0 => format!("{every}, at {:.0} times the requirement", h + 1.0),
                Some(h) => format!("{every}, with {:.0} % headroom", h * 100.0),
                None => every,
            };
            (VerdictKind::Pass, reason)
        }
    }
}

/// A failed check in words.
fn says(check: &Check) -> String {
    use crate::verdict::Quantity::{Count, Latency, Rate};
    let side = if check.at_least { "below" } else { "above" };
    let name = check.name.replace('_', " ");
    match check.quantity {
        Latency { limit_ns, measured_ns: Some(ns) } => format!(
            "{name} {:.2} ms is {side} its limit of {} ms",
            ns as f64 / 1e6,
            limit_ns as f64 / 1e6
        ),
        Rate { limit_per_s, measured_per_s: Some(rate) } => {
            format!("{name} {rate:.1}/s is {side} its limit of {limit_per_s:.1}/s")
        }
        Count { limit_count, measured_count: Some(count) } => {
            format!("{name} {count} is {side} its limit of {limit_count}")
        }
        _ => format!("{name} was not measured"),
    }
}

fn undecided(check: &Check) -> String {
    let name = check.name.replace('_', " ");
    if check.note.is_empty() {
        format!("{name} was not measured")
    } else {
        format!("{name}: {}", check.note)
    }
}
