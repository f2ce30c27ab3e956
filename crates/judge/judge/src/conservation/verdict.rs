//! Verdict on a result of another tool, based only on its figures.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Durability, Kind, Part, ToolResult, Weight};
use plimsoll_plan::Claim;
use serde::Serialize;

use super::{DeclaredFacts, Finding, Severity, rules};

/// Credibility of the figures of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Credibility {
    /// The figures contradict each other.
    Impossible,
    /// The figures can be true, but the work was not done by the named storage.
    Invalid,
    /// The figures can be true, but they do not prove the claimed result, or no rule could check
    /// them.
    Doubtful,
    /// All figures that could be checked agree.
    Consistent,
}

impl Credibility {
    /// Returns the verdict in capitals, for display.
    pub fn label(self) -> &'static str {
        match self {
            Self::Impossible => "IMPOSSIBLE",
            Self::Invalid => "INVALID",
            Self::Doubtful => "DOUBTFUL",
            Self::Consistent => "CONSISTENT",
        }
    }
}

/// Rule that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncheckedRule {
    /// Rule identifier.
    pub rule: &'static str,
    /// Figures that the rule requires.
    pub needs: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    pub verdict: Credibility,
    /// Reason for the verdict, in one sentence.
    pub reason: String,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Rules that have no finding, each with the number of its checks.
    #[serde(rename = "held")]
    pub passed: BTreeMap<&'static str, usize>,
    /// Rules that could not be applied.
    pub unknown: Vec<UncheckedRule>,
    /// Claims that the figures could support, each with the evidence that is missing.
    pub claims: BTreeMap<String, String>,
    /// Questions to the publisher, in the order of their importance.
    #[serde(rename = "ask")]
    pub questions: Vec<String>,
    /// Warnings that the tool itself printed. The reason repeats the first warning.
    #[serde(skip)]
    warnings: Vec<String>,
}

/// Judges one result.
pub fn audit(reported: &ToolResult, declared: &DeclaredFacts) -> Audit {
    let (mut findings, mut passed, mut unknown) = (Vec::new(), BTreeMap::new(), Vec::new());
    for rule in rules::ALL {
        let outcome = (rule.check)(reported, declared);
        if outcome.checked == 0 {
            unknown.push(UncheckedRule { rule: rule.id, needs: rule.needs });
        } else if outcome.findings.is_empty() {
            passed.insert(rule.id, outcome.checked);
        }
        findings.extend(outcome.findings.into_iter().map(|mut finding| {
            finding.rule = rule.id.to_owned();
            finding
        }));
    }
    findings.sort_by_key(|finding| finding.severity);
    Audit::of(reported, findings, passed, unknown)
}

impl Audit {
    fn of(
        reported: &ToolResult,
        findings: Vec<Finding>,
        passed: BTreeMap<&'static str, usize>,
        unknown: Vec<UncheckedRule>,
    ) -> Self {
        let (claims, mut questions) = claims(reported);
        let mut audit = Self {
            verdict: Credibility::Consistent,
            reason: String::new(),
            findings,
            passed,
            unknown,
            claims,
            questions: Vec::new(),
            warnings: reported
                .complaints
                .iter()
                .filter(|complaint| complaint.weight == Weight::Warning)
                .map(|complaint| complaint.says.clone())
                .collect(),
        };
        audit.decide();
        let mut first: Vec<String> = Vec::new();
        for finding in audit.findings.iter().filter(|finding| !finding.request.is_empty()) {
            if !first.contains(&finding.request) {
                first.push(finding.request.clone());
            }
        }
        questions.retain(|question| !first.contains(question));
        audit.questions = first.into_iter().chain(questions).collect();
        audit
    }

    /// Adds findings of rules that judge several results, and updates the verdict.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            if !finding.request.is_empty() && !self.questions.contains(&finding.request) {
                self.questions.insert(0, finding.request.clone());
            }
            self.findings.push(finding);
        }
        self.findings.sort_by_key(|finding| finding.severity);
        self.decide();
    }

    fn decide(&mut self) {
        let worst = self.findings.first();
        (self.verdict, self.reason) = match worst {
            Some(finding) => {
                let verdict = match finding.severity {
                    Severity::Impossible => Credibility::Impossible,
                    Severity::Invalid => Credibility::Invalid,
                    Severity::Doubtful => Credibility::Doubtful,
                };
                (verdict, finding.says.clone())
            }
            // A result that reports no errors may still have wrong figures, so this check alone
            // proves nothing.
            None if self.passed.keys().all(|rule| *rule == rules::says_invalid::RULE.id) => {
                let reason = "none of its figures can be compared with another figure";
                (Credibility::Doubtful, reason.into())
            }
            None => {
                let count: usize = self.passed.values().sum();
                let reason = match (count, self.passed.len()) {
                    (1, _) => "only one check was possible, and it passes".to_owned(),
                    (count, 1) => {
                        format!("only one rule was applicable, and its {count} checks pass")
                    }
                    (count, rules) => format!("all {count} checks of {rules} rules pass"),
                };
                (Credibility::Consistent, reason)
            }
        };
        if let Some(warning) = self.warnings.first() {
            self.reason.push_str(&format!("; the tool warns: {warning}"));
        }
    }

    /// Returns the identifiers of the rules that have findings, without duplicates, worst first.
    pub fn hits(&self) -> Vec<&str> {
        let mut hits: Vec<&str> = Vec::new();
        for finding in &self.findings {
            if !hits.contains(&finding.rule.as_str()) {
                hits.push(&finding.rule);
            }
        }
        hits
    }
}

/// Returns the claims that the figures could support, and questions about the missing evidence. A
/// result file alone never proves which medium served the reads, that a rate is sustained, that
/// data survives a power loss, or the tail of latencies that were not recorded.
fn claims(reported: &ToolResult) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut claims, mut questions) = (BTreeMap::new(), Vec::new());
    let mut claim =
        |claim: Claim, says: &str| claims.insert(claim.word().to_owned(), says.to_owned());
    let mut want = |what: &str| questions.push(what.to_owned());
    let does = |kind: &Kind| reported.operations().any(|(_, operation)| operation.kind == *kind);
    let settings = || reported.parts.iter().map(|part| &part.setting);
    let intervals = reported.parts.iter().any(|part: &Part| !part.series.is_empty());
    if does(&Kind::Read) {
        claim(
            Claim::CachedRead,
            "could be supported: reads completed at this rate, but the source of the data is \
             unknown",
        );
        claim(
            Claim::MediaRead,
            "not shown: no figure of the result shows that the data came from the media",
        );
        want(
            "the devices' own read counters over the run, and the sizes of the data and of all \
             caches",
        );
    }
    if does(&Kind::Write) {
        claim(
            Claim::BurstWrite,
            "could be supported: writes completed at this rate for the length of the run",
        );
        let lasts = if intervals { "there is an interval log" } else { "there is no interval log" };
        claim(
            Claim::SustainedWrite,
            &format!(
                "not shown: {lasts}, and the capacity or the amount written before the run is \
                 unknown"
            ),
        );
        let each = settings().any(|s| s.durability == Some(Durability::EachWrite));
        let flushed = settings().any(|s| s.durability == Some(Durability::Flushed));
        let says = if each || flushed {
            "not shown: flushes were requested, but the result does not prove that a device \
             performed them"
        } else {
            "not shown: the result does not prove that completed writes were on stable storage"
        };
        claim(Claim::DurableWrite, says);
        want(
            "the amount written before the run, the capacity, and the number of flushes that the \
             device counted",
        );
    }
    let bins = reported.operations().any(|(_, o)| o.latencies.iter().any(|l| !l.bins.is_empty()));
    let tail = if bins {
        "not shown: there is a histogram, but the intended start times of operations are unknown"
    } else {
        "not shown: there is no histogram, and the intended start times of operations are unknown"
    };
    claim(Claim::TailLatency, tail);
    if !intervals {
        want("an interval log of rate and latency with at least one line per second");
    }
    if !bins {
        want("a latency histogram, because percentiles alone are not enough");
    }
    if settings().all(|setting| setting.outstanding.is_none()) {
        want("the number of operations in flight");
    }
    claim(
        Claim::Comparative,
        "could be supported: the figures can be compared with results under the same conditions",
    );
    (claims, questions)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Operation};

    use super::*;

    fn result(bandwidth: f64) -> ToolResult {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(10_000.0, "iops")],
            size_bytes: Some(Figure::exact(4096.0, "bs")),
            bandwidth_per_s: vec![Figure::exact(bandwidth, "bw")],
            ..Operation::of(Kind::Read)
        };
        ToolResult {
            parts: vec![Part { operations: vec![operation], ..Part::default() }],
            ..ToolResult::default()
        }
    }

    #[test]
    fn consistent_impossible_and_nothing_to_check() {
        let declared = DeclaredFacts::default();
        let good = audit(&result(40_960_000.0), &declared);
        assert_eq!(good.verdict, Credibility::Consistent, "{good:?}");
        assert!(good.claims["media-read"].starts_with("not shown"));
        assert!(good.unknown.iter().any(|unknown| unknown.rule == "littles-law"));
        assert!(good.passed.contains_key("rate-size-bandwidth"));
        let bad = audit(&result(42_000_000.0), &declared);
        assert_eq!(
            (bad.verdict, bad.hits()),
            (Credibility::Impossible, vec!["rate-size-bandwidth"])
        );
        assert_eq!(audit(&ToolResult::default(), &declared).verdict, Credibility::Doubtful);
    }

    #[test]
    fn no_errors_and_no_figures_are_not_consistent() {
        let part = Part { errors: Some(Figure::exact(0.0, "err")), ..Part::default() };
        let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
        let audit = audit(&reported, &DeclaredFacts::default());
        assert_eq!((audit.verdict, audit.passed.len()), (Credibility::Doubtful, 1));
    }

    #[test]
    fn what_is_found_over_several_results_counts() {
        let mut audit = audit(&result(40_960_000.0), &DeclaredFacts::default());
        audit.add([Finding::new(Severity::Doubtful, "best of five").with_request("all five")]);
        assert_eq!(audit.verdict, Credibility::Doubtful);
        assert_eq!(audit.questions[0], "all five");
    }
}
