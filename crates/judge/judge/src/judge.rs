//! Computes the verdict on a run from rules, checks and claims, in this order of precedence. The
//! verdict is a pure function of the bundle.

mod claims;

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind};
use plimsoll_plan::{Requirement, Window};

use self::claims::{claim_statuses, claims_of, declarations, mandatory, refutes};
use crate::checks;
use crate::claim::{Claim, ClaimStatus};
use crate::durability;
use crate::events;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::rules::{self, Rule, coordinated_omission, evidence, generator_limit};
use crate::verdict::{Check, RULES_VERSION, Verdict, VerdictKind};

/// Judges a run.
pub fn judge(bundle: &Bundle) -> Verdict {
    judge_run(bundle, bundle.plan.requirement.as_ref(), &[])
}

/// Judges one host's part of a fleet run. Events and the windows around them are left out, because
/// they are judged on the sum of all hosts.
pub fn judge_host(bundle: &Bundle) -> Verdict {
    let requirement = bundle.plan.requirement.as_ref().filter(|one| !one.has_only_windows());
    let requirement = requirement.map(|one| Requirement { windows: Vec::new(), ..one.clone() });
    judge_run(bundle, requirement.as_ref(), &rules::OF_EVENTS)
}

/// Judges a run against this requirement, without the rules in `left_out`.
fn judge_run(bundle: &Bundle, requirement: Option<&Requirement>, left_out: &[&Rule]) -> Verdict {
    let [before, after] = [Window::Before, Window::After].map(|w| events::slice_window(bundle, w));
    let mut findings: Vec<Finding> = rules::ALL
        .iter()
        .filter(|rule| !left_out.iter().any(|left| left.id == rule.id))
        .filter_map(|rule| match before.as_ref().filter(|_| OUTSIDE_EVENTS.contains(&rule.id)) {
            Some(before) => check_outside_events(rule, before, after.as_ref()),
            None => (rule.check)(bundle),
        })
        .collect();
    let claimed = claims_of(bundle);
    let accepts_omission = is_accepted(bundle, coordinated_omission::RULE.id);
    let checked = |accepts| {
        requirement.map_or_else(Vec::new, |required| {
            let mut checks = checks::all(bundle, required, accepts);
            checks.extend(events::checks::of_windows(bundle, required, accepts));
            checks.extend(events::checks::of_streams(bundle, required, accepts));
            checks
        })
    };
    let mut checks = checked(accepts_omission);
    let omission_decides = accepts_omission && checks != checked(false);
    checks.extend(rules::replay::checks(bundle));
    checks.extend(durability::check(bundle));
    let required = requirement.and_then(|r| r.iops_per_s);
    let achieved = figures::rate_per_s(bundle, achieved_pick(bundle));
    let headroom = match (achieved, required) {
        (Some(achieved), Some(required)) if required > 0.0 && !checks::open_loop(bundle) => {
            Some(achieved / required - 1.0)
        }
        _ => None,
    };
    let claims = claim_statuses(&findings, &claimed, bundle.run.tier);
    let mut accepted = accepted(bundle, &findings, &claimed);
    if omission_decides && !accepted.iter().any(|id| id == coordinated_omission::RULE.id) {
        accepted.push(coordinated_omission::RULE.id.to_owned());
        accepted.sort_unstable();
    }
    let declared = declarations(&findings, &claimed);
    let case = Case {
        bundle,
        has_requirement: requirement.is_some(),
        findings: &findings,
        claimed: &claimed,
        checks: &checks,
        headroom,
        claims: &claims,
        accepted: &accepted,
        declared: &declared,
    };
    let (verdict, reason) = case.decide();
    // The reason must say that the storage is a model, so that no reader mistakes its figure for a
    // measurement of real storage.
    let modelled = bundle.run.driver == Driver::Model;
    let reason = if modelled { format!("modelled: {reason}") } else { reason };
    let reason = match verdict {
        // Caches on the other side of a network are not visible, so the reason mentions the network
        // even if the verdict is PASS.
        VerdictKind::Pass if evidence::is_real(bundle) && evidence::is_remote(bundle) => {
            format!("{reason}, as seen by the client; the storage behind the network is unknown")
        }
        _ => reason,
    };
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
        claims: claims.into_iter().map(|(c, status)| (c.word().to_owned(), status)).collect(),
        tier: bundle.run.tier,
        findings,
        passed: passed.into_iter().map(|finding| finding.rule).collect(),
        accepted,
        declared,
        rules_version: RULES_VERSION,
        run_id: bundle.run.run_id.clone(),
    }
}

/// Returns the operations that count for the achieved rate: reads and writes, or metadata
/// operations if there are no reads or writes.
fn achieved_pick(bundle: &Bundle) -> Pick {
    let has_data = figures::totals(bundle, Pick::Data).count > 0;
    if has_data { Pick::Data } else { Pick::Transactional }
}

/// Rules that no plan may accept as unknown, because they check that the run was really executed.
pub const NOT_ACCEPTED: [&str; 6] = [
    rules::events::RULE.id,
    rules::io_errors::RULE.id,
    rules::measured_too_short::RULE.id,
    rules::never_settled::RULE.id,
    rules::not_completed::RULE.id,
    rules::operations_lost::RULE.id,
];

/// Returns true if the plan accepts `unknown` from this rule.
pub(crate) fn is_accepted(bundle: &Bundle, rule: &str) -> bool {
    let names = |id: &String| rules::find(id).is_some_and(|found| found.id == rule);
    !NOT_ACCEPTED.contains(&rule) && bundle.plan.evidence.accept_unknown.iter().any(names)
}

/// Returns those mandatory rules of the claims whose outcome is unknown, and which the plan accepts
/// as unknown.
fn accepted(bundle: &Bundle, findings: &[Finding], claimed: &[Claim]) -> Vec<String> {
    let mandatory = claimed.iter().flat_map(|&claim| mandatory(findings, claim));
    let unknown = mandatory.filter(|(_, finding)| finding.outcome == Outcome::Unknown);
    let mut accepted: Vec<String> = unknown
        .filter(|(rule, _)| is_accepted(bundle, rule.id))
        .map(|(rule, _)| rule.id.to_owned())
        .collect();
    accepted.sort_unstable();
    accepted.dedup();
    accepted
}

/// Returns true if a failed or unknown rule on events decides the verdict on a fleet with this sum.
/// The conditions are those of a single run.
pub(crate) fn decides_fleet(sum: &Bundle, finding: &Finding) -> bool {
    let (claimed, id) = (claims_of(sum), finding.rule.as_str());
    let is_mandatory = |rule: &Rule| claimed.iter().any(|claim| rule.mandatory_for(*claim));
    match finding.outcome {
        Outcome::Fail => {
            ALWAYS_REFUTE.contains(&id) || claimed.iter().any(|claim| refutes(finding, *claim))
        }
        Outcome::Unknown => {
            rules::find(id).is_some_and(is_mandatory)
                && (ALWAYS_DECIDE.contains(&id) || !sum.plan.claims_assumed)
                && !is_accepted(sum, id)
        }
        Outcome::Warn | Outcome::Pass => false,
    }
}

/// These rules judge only the time before the first event and the time after the recovery, because
/// an event may change the rate.
const OUTSIDE_EVENTS: [&str; 6] = [
    rules::not_steady::RULE.id,
    rules::rate_capped::RULE.id,
    rules::burst_credit::RULE.id,
    rules::load_not_reached::RULE.id,
    rules::coordinated_omission::RULE.id,
    rules::percentile_samples::RULE.id,
];

/// Applies a rule to the time before the first event, and returns its finding. If the rule passes
/// there but fails for the time after the recovery, returns this failure. Other findings about the
/// time after the recovery are ignored, because this time may be too short.
fn check_outside_events(rule: &Rule, before: &Bundle, after: Option<&Bundle>) -> Option<Finding> {
    let finding = (rule.check)(before);
    let failed = |finding: &Finding| finding.outcome == Outcome::Fail;
    if finding.as_ref().is_some_and(failed) {
        return finding;
    }
    let late = after.and_then(|after| (rule.check)(after)).filter(failed);
    let late = late.map(|finding| Finding {
        says: format!("after the recovery, {}", finding.says),
        ..finding
    });
    late.or(finding)
}

/// Rules that make a run undecided if their result is unknown, regardless of the claims: the run
/// was not executed as planned.
const ALWAYS_DECIDE: [&str; 6] = [
    rules::events::RULE.id,
    rules::measured_too_short::RULE.id,
    rules::not_completed::RULE.id,
    rules::check_failed::RULE.id,
    rules::never_settled::RULE.id,
    rules::observation_gaps::RULE.id,
];

/// Rules of [`ALWAYS_DECIDE`] that affect another tool's result only if a claim or a requirement is
/// stated. The other tool determined the length of the run, and not every result contains the names
/// of the files.
const ONLY_WITH_CLAIM: [&str; 2] =
    [rules::measured_too_short::RULE.id, rules::observation_gaps::RULE.id];

/// Rules that invalidate a run if they fail, regardless of the claims. If such a rule fails, the
/// evidence does not come from a real run, or does not describe the observed system.
const ALWAYS_REFUTE: [&str; 3] =
    [rules::evidence_consistent::RULE.id, rules::events::RULE.id, rules::observation_gaps::RULE.id];

/// Inputs of a verdict.
struct Case<'a> {
    bundle: &'a Bundle,
    has_requirement: bool,
    findings: &'a [Finding],
    claimed: &'a [Claim],
    checks: &'a [Check],
    headroom: Option<f64>,
    claims: &'a BTreeMap<Claim, ClaimStatus>,
    accepted: &'a [String],
    declared: &'a [String],
}

impl Case<'_> {
    fn decide(&self) -> (VerdictKind, String) {
        if let Some(says) = self.find_refutation() {
            // Lost data decides the verdict even if the figures of the load are invalid.
            let losses =
                self.checks.iter().find(|c| c.name == durability::CUTS && c.ok == Some(false));
            let losses = losses.map(|check| format!("; and {}", describe_failed(check)));
            return (VerdictKind::Invalid, says + &losses.unwrap_or_default());
        }
        if self.bundle.run.end.kind == EndKind::Interrupted {
            return (VerdictKind::Inconclusive, self.bundle.run.end.says.clone());
        }
        if let Some(decided) = self.find_failure() {
            return decided;
        }
        if let Some(says) = self.find_undecided() {
            return (VerdictKind::Inconclusive, says);
        }
        if !self.has_requirement {
            let says = match self.bundle.plan.workload.trace() {
                Some(trace) if trace.speed.is_some() => {
                    "the replay followed the trace; no requirement was stated"
                }
                _ if self.bundle.plan.durability.is_some() => {
                    "no acknowledged write was missing after the cuts of the target; no other \
                     requirement was stated"
                }
                _ => "no requirement was stated",
            };
            return (VerdictKind::Measured, self.add_qualifications(says.to_owned()));
        }
        if self.checks.iter().all(|check| check.ok.is_none()) {
            let says = "no limit of the requirement could be judged, so the verdict cannot be PASS";
            return (VerdictKind::Inconclusive, says.to_owned());
        }
        (VerdictKind::Pass, self.describe_pass())
    }

    /// Returns the text of a failed rule that refutes one of the claims, or that invalidates every
    /// run.
    fn find_refutation(&self) -> Option<String> {
        let always = |finding: &&Finding| {
            let foreign = self.bundle.run.driver == Driver::Foreign;
            finding.outcome == Outcome::Fail
                && (ALWAYS_REFUTE.contains(&finding.rule.as_str())
                    || foreign && finding.rule == rules::memory_target::RULE.id)
        };
        if let Some(finding) = self.findings.iter().find(always) {
            return Some(finding.says.clone());
        }
        let of_claim = |claim: Claim| self.findings.iter().find(|finding| refutes(finding, claim));
        self.claimed.iter().find_map(|&claim| of_claim(claim)).map(|failed| failed.says.clone())
    }

    fn find_failure(&self) -> Option<(VerdictKind, String)> {
        let failed = self.checks.iter().filter(|check| check.ok == Some(false));
        let reason = failed.map(describe_failed).collect::<Vec<_>>().join("; ");
        if reason.is_empty() {
            return None;
        }
        // A slow load generator cannot cause damaged or lost data.
        let has_damage = self.checks.iter().any(|check| {
            check.ok == Some(false) && [checks::CHECKSUMS, durability::CUTS].contains(&&*check.name)
        });
        if !has_damage && generator_limit::at_limit(self.bundle) {
            let reason = format!("{reason}; but the load generator itself was at its limit");
            return Some((VerdictKind::Inconclusive, reason));
        }
        Some((VerdictKind::Fail, reason))
    }

    /// Returns the reason why the run is undecided: an unknown mandatory rule, an undecided limit,
    /// or an unsupported claim other than the requirement.
    fn find_undecided(&self) -> Option<String> {
        // The reasons are checked in this order: a run that was not executed as planned, undecided
        // limits, other unknown rules.
        let of_claims = |rule: &Rule| ONLY_WITH_CLAIM.contains(&rule.id) && self.claims_nothing();
        let decides = |rule: &Rule| ALWAYS_DECIDE.contains(&rule.id) && !of_claims(rule);
        if let Some(finding) = self.find_unknown(decides) {
            return Some(finding.says.clone());
        }
        let undecided: Vec<String> = self
            .checks
            .iter()
            .filter(|check| self.is_open(check))
            .map(describe_undecided)
            .collect();
        if !undecided.is_empty() {
            return Some(undecided.join("; "));
        }
        // A plan with claims must support them. If a plan has no claims, the verdict only lists the
        // open points.
        if let Some(finding) = self.find_unknown(|_| !self.bundle.plan.claims_assumed) {
            return Some(self.with_acceptance(finding));
        }
        self.bundle.plan.requirement.as_ref()?;
        let mut claims = self.claims.iter().filter(|(claim, _)| self.claimed.contains(claim));
        let unshown = claims.find(|(claim, status)| {
            **status == ClaimStatus::NotShown && !self.is_unknown_but_accepted(**claim)
        });
        unshown.map(|(claim, _)| {
            format!("{} is claimed, but there is no evidence for it", claim.word())
        })
    }

    /// Returns true if another tool measured the figures, and the user states neither a claim nor a
    /// requirement.
    fn claims_nothing(&self) -> bool {
        self.bundle.run.driver == Driver::Foreign
            && self.bundle.plan.claims_assumed
            && !self.bundle.run.classes.is_empty()
    }

    /// Returns the first mandatory rule of the claims that is unknown, is not accepted by the plan,
    /// and is selected by `decides`.
    fn find_unknown(&self, decides: impl Fn(&Rule) -> bool) -> Option<&Finding> {
        let mut mandatory = self.claimed.iter().flat_map(|&claim| mandatory(self.findings, claim));
        let unknown = mandatory.find(|(rule, finding)| {
            finding.outcome == Outcome::Unknown && decides(rule) && !self.accepts(rule.id)
        });
        unknown.map(|(_, finding)| finding)
    }

    /// Returns the finding's text. If no other rule or limit is undecided, the text shows the line
    /// with which a plan can accept this rule as unknown.
    fn with_acceptance(&self, finding: &Finding) -> String {
        let alone = self.find_unknown(|rule| rule.id != finding.rule).is_none();
        let accepted = &self.bundle.plan.evidence.accept_unknown;
        if !alone
            || self.bundle.plan.requirement.is_none()
            || NOT_ACCEPTED.contains(&finding.rule.as_str())
        {
            return finding.says.clone();
        }
        let rules = accepted.iter().chain(std::iter::once(&finding.rule));
        let list: Vec<String> = rules.map(|rule| format!("\"{rule}\"")).collect();
        format!(
            "{}; every limit is met: with accept_unknown = [{}] in [evidence], the verdict would be \
             decided",
            finding.says,
            list.join(", ")
        )
    }

    fn accepts(&self, rule: &str) -> bool {
        self.accepted.iter().any(|accepted| accepted == rule)
    }

    /// Returns true if a claim lacks support only because of rules that the plan accepts as
    /// unknown.
    fn is_unknown_but_accepted(&self, claim: Claim) -> bool {
        let mut unknown = mandatory(self.findings, claim)
            .filter(|(_, f)| f.outcome == Outcome::Unknown)
            .peekable();
        unknown.peek().is_some() && unknown.all(|(rule, _)| self.accepts(rule.id))
    }

    /// Returns true if a check is undecided. The check for checksum errors does not count if the
    /// plan accepts `unknown` from the corresponding rule.
    fn is_open(&self, check: &Check) -> bool {
        let accepted =
            check.name == checks::CHECKSUMS && self.accepts(rules::check_failed::RULE.id);
        check.ok.is_none() && !accepted
    }

    /// Names the check that is closest to its limit, and the headroom.
    fn describe_pass(&self) -> String {
        let kept: Vec<&Check> = self.checks.iter().filter(|check| check.ok == Some(true)).collect();
        let closest = kept.iter().copied().min_by(|a, b| slack(a).total_cmp(&slack(b)));
        let figure = closest.map_or(String::new(), figure_with_limit);
        let every = match kept.len() {
            1 => figure,
            count => {
                format!("all {count} limits are met; the figure closest to its limit is {figure}")
            }
        };
        self.add_qualifications(match self.headroom {
            Some(h) if h > HEADROOM_SHOWN_MAX => {
                format!("{every}; the rate is more than 10 times the required rate")
            }
            Some(h) => format!("{every}; {:.0} % headroom", h * 100.0),
            None => every,
        })
    }

    /// Adds the accepted unknowns and the declarations to the reason.
    fn add_qualifications(&self, reason: String) -> String {
        let mut reason = reason;
        if !self.accepted.is_empty() {
            let rules = self.accepted.join(", ");
            reason.push_str(&format!("; the plan accepts these rules as unknown: {rules}"));
        }
        if !self.declared.is_empty() {
            reason.push_str(&format!("; as declared, not measured: {}", self.declared.join(", ")));
        }
        reason
    }
}

/// Describes a failed check in words.
pub(crate) fn describe_failed(check: &Check) -> String {
    use crate::verdict::Quantity::{Bandwidth, Capacity, Count, Latency, Rate};
    let side = if check.at_least { "below" } else { "above" };
    let name = check.name.replace('_', " ");
    match check.quantity {
        Latency { limit_ns, measured_ns: Some(ns) } => {
            let limit = limit_ns as f64 / 1e6;
            let [measured, _] = differing(ns as f64 / 1e6, limit, 2);
            format!("{name} {measured} ms is {side} its limit of {limit} ms")
        }
        Rate { limit_per_s, measured_per_s: Some(rate) } => {
            let [rate, limit] = differing(rate, limit_per_s, 1);
            format!("{name} {rate}/s is {side} its limit of {limit}/s")
        }
        Count { limit_count, measured_count: Some(count) } => {
            format!("{name} {count} is {side} its limit of {limit_count}")
        }
        Bandwidth { limit_bytes_per_s, measured_bytes_per_s: Some(bytes) } => {
            let [bytes, limit] = differing(bytes / 1e6, limit_bytes_per_s as f64 / 1e6, 2);
            format!("{name} {bytes} MB/s is {side} its limit of {limit} MB/s")
        }
        Capacity { limit_bytes, measured_bytes: Some(bytes) } => {
            format!("{name} {bytes} bytes is {side} its limit of {limit_bytes} bytes")
        }
        _ => format!("{name} was not measured"),
    }
}

/// Formats a measured value and its limit with at least `decimals` decimals. Adds decimals until the
/// two texts differ.
fn differing(measured: f64, limit: f64, decimals: usize) -> [String; 2] {
    let texts = |decimals: usize| [measured, limit].map(|value| format!("{value:.decimals$}"));
    let differ = |texts: &[String; 2]| texts[0] != texts[1] || measured == limit;
    (decimals..=9).map(texts).find(differ).unwrap_or_else(|| texts(9))
}

/// Largest headroom that is shown as a number: ten times the required rate.
pub const HEADROOM_SHOWN_MAX: f64 = 9.0;

/// Returns the limit divided by the measured value. For a lower limit, returns the measured value
/// divided by the limit. The result is 1 at the limit, larger than 1 if the limit is met with a
/// margin, and infinite for a count of zero.
fn slack(check: &Check) -> f64 {
    use crate::verdict::Quantity::{Bandwidth, Capacity, Count, Latency, Rate};
    let (limit, measured) = match check.quantity {
        Latency { limit_ns, measured_ns } => (limit_ns as f64, measured_ns.map(|ns| ns as f64)),
        Rate { limit_per_s, measured_per_s } => (limit_per_s, measured_per_s),
        Count { limit_count, measured_count } => {
            (limit_count as f64, measured_count.map(|count| count as f64))
        }
        Bandwidth { limit_bytes_per_s, measured_bytes_per_s } => {
            (limit_bytes_per_s as f64, measured_bytes_per_s)
        }
        Capacity { limit_bytes, measured_bytes } => {
            (limit_bytes as f64, measured_bytes.map(|bytes| bytes as f64))
        }
    };
    let slack = match measured {
        Some(measured) if check.at_least => measured / limit,
        Some(measured) => limit / measured,
        None => f64::INFINITY,
    };
    // Limit and count are both zero.
    if slack.is_nan() { f64::INFINITY } else { slack }
}

/// Formats a limit that is met, such as `write p99 1.4 ms (limit 10 ms)`.
fn figure_with_limit(check: &Check) -> String {
    use crate::verdict::Quantity::{Bandwidth, Capacity, Count, Latency, Rate};
    let name = check.name.replace("_latency_", " ").replace('_', " ");
    let figures = match check.quantity {
        Latency { limit_ns, measured_ns: Some(ns) } => {
            let texts = [milliseconds(ns), milliseconds(limit_ns)];
            Some(match texts[0] == texts[1] {
                true => short_pair(ns as f64 / 1e6, limit_ns as f64 / 1e6, " ms"),
                false => texts,
            })
        }
        Rate { limit_per_s, measured_per_s: Some(rate) } => {
            Some(short_pair(rate, limit_per_s, "/s"))
        }
        Count { limit_count, measured_count: Some(count) } => {
            Some([count.to_string(), limit_count.to_string()])
        }
        Bandwidth { limit_bytes_per_s, measured_bytes_per_s: Some(bytes) } => {
            Some(short_pair(bytes / 1e6, limit_bytes_per_s as f64 / 1e6, " MB/s"))
        }
        Capacity { limit_bytes, measured_bytes: Some(bytes) } => {
            Some([format!("{bytes} bytes"), format!("{limit_bytes} bytes")])
        }
        _ => None,
    };
    let limit = if check.at_least { "at least" } else { "limit" };
    match figures {
        Some([measured, of]) => format!("{name} {measured} ({limit} {of})"),
        None => name,
    }
}

/// Formats a measured value and its limit with [`short`]. Adds decimals if the two texts are equal.
fn short_pair(measured: f64, limit: f64, unit: &str) -> [String; 2] {
    let texts = [measured, limit].map(short);
    let same = texts[0] == texts[1] && measured != limit;
    let texts = if same { differing(measured, limit, 0) } else { texts };
    texts.map(|text| format!("{text}{unit}"))
}

fn milliseconds(ns: u64) -> String {
    match ns {
        0..100_000 => format!("{} µs", short(ns as f64 / 1e3)),
        _ => format!("{} ms", short(ns as f64 / 1e6)),
    }
}

/// Formats a number with at most two decimals, and without trailing zeroes.
fn short(number: f64) -> String {
    let text = if number >= 100.0 { format!("{number:.0}") } else { format!("{number:.2}") };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

pub(crate) fn describe_undecided(check: &Check) -> String {
    let name = check.name.replace('_', " ");
    if check.note.is_empty() {
        format!("{name} was not measured")
    } else {
        format!("{name}: {}", check.note)
    }
}

#[cfg(test)]
mod tests;
