//! Sections about findings (the worst first) and about claims with their rules.

use plimsoll_judge::claim::{Claim, ClaimStatus};
use plimsoll_judge::finding::{Finding, Outcome};
use plimsoll_judge::{Verdict, VerdictKind, rules};

use super::sentence;
use crate::document::{Block, Fact, FindingLine, Section};
use crate::number::{Letters, Unit, group_counts};
use crate::table::{Cell, Column, Table, Tone};

pub(super) fn section(verdict: &Verdict) -> Section {
    let section = Section::brief("findings", "Findings");
    if verdict.findings.is_empty() {
        let none = "The rules have no findings about this run.";
        return section.with(Block::Words(none.to_owned()));
    }
    let lines = verdict.findings.iter().map(|finding| {
        let mut line = line(finding);
        if let Some(concerns) = concerns(verdict, finding) {
            line.says = format!("{} {concerns}", line.says);
        }
        line
    });
    section.with(Block::Findings(lines.collect()))
}

/// Lists the claims that a failed rule refutes. A run that makes one of these claims is INVALID;
/// for such a run, `None` is returned.
fn concerns(verdict: &Verdict, finding: &Finding) -> Option<String> {
    let stands = !matches!(verdict.verdict, VerdictKind::Invalid | VerdictKind::Inconclusive);
    if finding.outcome != Outcome::Fail || !stands {
        return None;
    }
    let rule = rules::find(&finding.rule)?;
    let claims = Claim::ALL.iter().filter(|claim| rule.refutes(**claim));
    let claims: Vec<&str> = claims.map(|claim| claim.word()).collect();
    Some(match claims.as_slice() {
        [] => "This finding affects no claim.".to_owned(),
        [one] => {
            format!("This finding refutes the claim {one}, but this run does not make that claim.")
        }
        several => {
            format!(
                "This finding refutes the claims {}, but this run makes none of these claims.",
                several.join(", ")
            )
        }
    })
}

/// Returns the findings, the worst first. If there are no findings, the section contains the text
/// `none`.
pub(crate) fn list(findings: &[Finding], none: &str) -> Section {
    let section = Section::brief("findings", "Findings");
    if findings.is_empty() {
        return section.with(Block::Words(none.to_owned()));
    }
    section.with(Block::Findings(findings.iter().map(line).collect()))
}

pub(crate) fn claims_section(verdict: &Verdict) -> Section {
    Section::full("claims", "Claims and rules")
        .with(Block::Table(claims(verdict)))
        .with(passed(verdict))
}

/// Returns the claims on one line, for the terminal.
pub(crate) fn claims_line(verdict: &Verdict) -> Section {
    let names_of = |status: ClaimStatus| {
        let names = verdict.claims.iter().filter(|(_, s)| **s == status);
        names.map(|(claim, _)| claim.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut facts = Vec::new();
    let claim_statuses = [
        ClaimStatus::Believable,
        ClaimStatus::AsDeclared,
        ClaimStatus::NotShown,
        ClaimStatus::Refuted,
    ];
    for status in claim_statuses {
        let names = names_of(status);
        if !names.is_empty() {
            facts.push(Fact::new(status.label(), Cell::text(names)));
        }
    }
    for (name, values) in qualifications(verdict) {
        facts.push(Fact::new(name, Cell::text(values.join(", "))));
    }
    facts.push(Fact::new("rules passed", Cell::text(verdict.passed.join(", "))));
    let title = "Claims: what the figures can show";
    Section::terminal("claims-line", title).with(Block::Facts(facts))
}

/// Returns what the verdict relies on although it was not checked: declarations of the plan, and
/// rules that the plan accepts as unknown.
fn qualifications(verdict: &Verdict) -> impl Iterator<Item = (&'static str, &[String])> {
    [
        ("declared by the plan, not measured", verdict.declared.as_slice()),
        ("accepted as unknown by the plan", verdict.accepted.as_slice()),
    ]
    .into_iter()
    .filter(|(_, values)| !values.is_empty())
}

pub(crate) fn line(finding: &Finding) -> FindingLine {
    let (outcome, tone) = match finding.outcome {
        Outcome::Fail => ("fail", Tone::Bad),
        Outcome::Unknown => ("unknown", Tone::Warn),
        Outcome::Warn => ("warn", Tone::Warn),
        Outcome::Pass => ("pass", Tone::Good),
    };
    FindingLine {
        outcome: outcome.to_owned(),
        tone,
        rule: finding.rule.clone(),
        says: group_counts(&sentence(&finding.says)),
        advice: sentence(&finding.advice),
        evidence: finding.evidence.iter().map(shown).collect(),
    }
}

/// Formats a number of the evidence. The end of the number's name determines the unit. Returns the
/// name in words, and the formatted number.
fn shown((name, value): (&String, &serde_json::Value)) -> (String, String) {
    let (unit, words) = Unit::of_name(name);
    let value = match (value, value.as_f64()) {
        (_, Some(number)) => unit.show(number, Letters::Unicode),
        (serde_json::Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    };
    (words.replace('_', " "), value)
}

pub(crate) fn claims(verdict: &Verdict) -> Table {
    let mut table = Table::new(
        "What these figures show",
        vec![
            Column::words("claim", "claim"),
            Column::words("status", "standing"),
            Column::words("meaning", "meaning"),
        ],
    );
    table.rows = verdict
        .claims
        .iter()
        .map(|(claim, status)| {
            let tone = match status {
                ClaimStatus::Believable => Tone::Good,
                ClaimStatus::AsDeclared | ClaimStatus::NotShown => Tone::Warn,
                ClaimStatus::Refuted => Tone::Bad,
            };
            vec![
                Cell::text(claim.clone()),
                Cell::text(status.label()).tone(tone),
                Cell::text(meaning(claim)),
            ]
        })
        .collect();
    let mut notes = vec![
        "A claim states what the figures prove. Each claim has its own rules, and `not shown` means \
         that this evidence does not prove the claim."
            .to_owned(),
    ];
    let taken_on_trust = qualifications(verdict);
    notes.extend(taken_on_trust.map(|(n, v)| sentence(&format!("{n}: {}", v.join(", ")))));
    table.note = notes.join(" ");
    table
}

fn meaning(claim: &str) -> &'static str {
    match claim {
        "requirement" => "the storage sustains the load that the requirement describes",
        "media-read" => "reads came from the media, not from a cache",
        "cached-read" => "reads came from a cache, as the plan states",
        "burst-write" => "writes were accepted at this rate for a short time",
        "sustained-write" => "writes can continue at this rate for any length of time",
        "durable-write" => "acknowledged writes survive a loss of power",
        "tail-latency" => "users would see the high percentiles of latency that were measured",
        "trace-replay" => {
            "the run replayed the operations of the trace, in the same order and at the same times"
        }
        "in-memory" => "the target is this host's memory, as the plan states",
        "comparative" => "one system is faster or slower than another system",
        _ => "",
    }
}

fn passed(verdict: &Verdict) -> Block {
    let mut table = Table::new(
        "Rules that passed",
        vec![Column::words("rule", "rule"), Column::words("checks", "asks")],
    );
    table.rows = verdict
        .passed
        .iter()
        .map(|id| {
            let asks = rules::find(id).map_or("", |rule| rule.asks);
            vec![Cell::text(id.clone()).tone(Tone::Good), Cell::text(sentence(asks))]
        })
        .collect();
    table.note = format!(
        "Version {} of the rules. A rule that was not checked counts as unknown, never as passed.",
        verdict.rules_version
    );
    Block::Table(table)
}
