//! Report of a table of results. Each row of the table is judged as a run.

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_judge::finding::{Finding, Outcome};

/// Returns the report: a line for each row, then each finding once.
pub fn rows_text(bundles: &[Bundle], verdicts: &[Verdict]) -> String {
    let failed = |verdict: &Verdict| {
        let failed = verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail);
        failed.map(|finding| finding.rule.clone()).collect::<Vec<_>>()
    };
    let bad = verdicts.iter().filter(|verdict| !failed(verdict).is_empty()).count();
    let mut text = match bad {
        0 => {
            format!("NO RULE FAILED  {} rows; a table alone proves no claim\n\n", verdicts.len())
        }
        _ => format!("INVALID  {bad} of {} rows\n\n", verdicts.len()),
    };
    let width = bundles.iter().map(|bundle| bundle.run.run_id.len()).max().unwrap_or(0);
    for (bundle, verdict) in bundles.iter().zip(verdicts) {
        let label = verdict.verdict.label();
        let rules = failed(verdict).join(", ");
        text.push_str(&format!("  {:width$}  {label:12}  {rules}\n", bundle.run.run_id));
        for finding in verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail) {
            text.push_str(&format!("  {:width$}    {}: {}\n", "", finding.rule, finding.says));
        }
    }
    text.push_str(&open_questions(verdicts));
    text
}

/// Lists each undecided rule once, with its rows and the first explanation.
fn open_questions(verdicts: &[Verdict]) -> String {
    let mut open: Vec<(&Finding, usize)> = Vec::new();
    let findings = verdicts.iter().flat_map(|verdict| &verdict.findings);
    for finding in findings.filter(|f| matches!(f.outcome, Outcome::Unknown | Outcome::Warn)) {
        match open.iter_mut().find(|(known, _)| known.rule == finding.rule) {
            Some((_, rows)) => *rows += 1,
            None => open.push((finding, 1)),
        }
    }
    if open.is_empty() {
        return String::new();
    }
    open.sort_by_key(|(finding, _)| finding.outcome);
    let mut text =
        "\nRules that neither passed nor failed with the figures in the table\n\n".to_owned();
    for (finding, rows) in open {
        let word = if finding.outcome == Outcome::Warn { "warn" } else { "unknown" };
        let Finding { rule, says, advice, .. } = finding;
        text.push_str(&format!("  {word:8} {rule} (rows: {rows}): {says}\n"));
        if !advice.is_empty() {
            text.push_str(&format!("           {advice}\n"));
        }
    }
    text
}
