//! Checks that no numbered repeat is missing.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::tool_result::ToolResult;

use super::super::repeats::{Group, without_numbers};
use super::super::{Finding, Severity};
use super::StudyRule;

/// Words that may precede the number of a repeat.
const WORDS: [&str; 9] =
    ["run", "iter", "iteration", "repeat", "rep", "repetition", "trial", "attempt", "round"];
/// Minimum number of repeats for a finding.
const REPEATS_MIN: usize = 2;
/// Largest number that can count repeats. Larger numbers are dates, sizes or process ids.
const NUMBER_MAX: u64 = 999;
/// Maximum number of repeats that a finding lists.
const SHOWN_MAX: usize = 6;

pub const RULE: StudyRule = StudyRule {
    id: "repeats-missing",
    asks: "are repeats missing from a numbered series?",
    explains: "If repeats are numbered from 0 or 1 (run-1, run-2, run-5), a missing number means \
               that a repeat was removed or never finished. The mean of the other repeats may then \
               be a favourable selection. The rule applies only if the number follows a word such \
               as run, iteration or trial, and if the results did the same work. If the last \
               repeats of a series were removed, no number is missing, so the rule cannot detect \
               the removal.",
    check,
};

fn check(results: &[&ToolResult], groups: &[Group<'_>]) -> Vec<(usize, Finding)> {
    // A repeat that ran a different workload is present, so it is not missing.
    let mut there: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for file in results.iter().map(|result| &result.source.file) {
        there.entry(without_numbers(file)).or_default().extend(number(file));
    }
    groups.iter().filter_map(|group| gap(group, &there)).collect()
}

fn gap(group: &Group<'_>, there: &BTreeMap<String, BTreeSet<u64>>) -> Option<(usize, Finding)> {
    let first = *group.at.first()?;
    let files: Vec<&str> = group.results.iter().map(|r| r.source.file.as_str()).collect();
    // Each repeat has only one file of this kind. Files with the same number are therefore not
    // repeats of each other.
    let numbers: Vec<u64> = files.iter().map(|file| number(file)).collect::<Option<_>>()?;
    let present: BTreeSet<u64> = numbers.iter().copied().collect();
    if present.len() != numbers.len() || present.len() < REPEATS_MIN {
        return None;
    }
    let last = *present.last()?;
    let begins = if present.contains(&0) { 0 } else { 1 };
    let others = there.get(&without_numbers(files.first()?));
    let is_there = |n: &u64| present.contains(n) || others.is_some_and(|others| others.contains(n));
    let missing: Vec<u64> = (begins..last).filter(|n| !is_there(n)).collect();
    // If more numbers are missing than present, the numbers have another meaning than counting
    // repeats.
    if missing.is_empty() || missing.len() > present.len() || last > NUMBER_MAX {
        return None;
    }
    let shown: Vec<String> = missing.iter().take(SHOWN_MAX).map(u64::to_string).collect();
    let more = missing.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let says = format!(
        "{} repeats have numbers up to {last}, but {}{more} {} missing ({})",
        present.len(),
        shown.join(", "),
        if missing.len() == 1 { "is" } else { "are" },
        group.label
    );
    let finding = Finding::new(Severity::Doubtful, says)
        .with_fields(files)
        .with_request("the missing repeats, or the reason why they are missing");
    Some((first, finding))
}

/// Returns the number that follows a word such as `run` in a path. `None` if the path contains no
/// such number, or several such numbers.
fn number(file: &str) -> Option<u64> {
    let mut found = None;
    let lower = file.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let before = lower[..at].trim_end_matches(['-', '_', ' ', '.', '=']);
        let word = before.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(before, |i| {
            let next = before[i..].chars().next().map_or(1, char::len_utf8);
            &before[i + next..]
        });
        if WORDS.contains(&word) || WORDS.iter().any(|w| word == format!("{w}s")) {
            if found.is_some() {
                return None;
            }
            found = Some(lower[at..end].parse().ok()?);
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::audits;
    use super::super::fixtures::reads;
    use super::*;
    use crate::conservation::DeclaredFacts;

    fn found(files: &[&str]) -> Option<String> {
        let all: Vec<ToolResult> = files.iter().map(|file| reads("fio", file, 10_000.0)).collect();
        let all: Vec<&ToolResult> = all.iter().collect();
        let audits = audits(&all, &DeclaredFacts::default());
        let findings = audits.into_iter().flat_map(|audit| audit.findings);
        findings.into_iter().find(|f| f.rule == RULE.id).map(|finding| finding.says)
    }

    #[test]
    fn numbers_that_are_left_out_are_named() {
        let says = found(&["a/run-1.json", "a/run-2.json", "a/run-5.json"]).unwrap();
        assert!(says.contains("3 repeats have numbers up to 5, but 3, 4 are missing"), "{says}");
        assert!(found(&["run2/x.json", "run3/x.json"]).unwrap().contains("1 is missing"));
        assert!(found(&["a/run-0.json", "a/run-1.json", "a/run-2.json"]).is_none());
        assert!(found(&["a/run-1.json", "a/run-2.json"]).is_none());
    }

    #[test]
    fn a_repeat_that_did_something_else_is_there() {
        let mut all =
            vec![reads("fio", "a/run-1.json", 10_000.0), reads("fio", "a/run-3.json", 10_000.0)];
        all.push(reads("fio", "a/run-2.json", 10_000.0));
        all[2].parts[0].name = "other".into();
        let all: Vec<&ToolResult> = all.iter().collect();
        let audits = audits(&all, &DeclaredFacts::default());
        assert!(audits.iter().all(|audit| audit.findings.is_empty()), "{audits:?}");
    }

    #[test]
    fn numbers_of_other_things_have_no_gaps() {
        for files in [
            ["a/qd1.json", "a/qd4.json", "a/qd8.json"],
            ["a/20240101-1.json", "a/20240102-2.json", "a/20240105-5.json"],
            ["run1/job2.json", "run1/job4.json", "run1/job7.json"],
            ["run1/iter2.json", "run2/iter3.json", "run3/iter7.json"],
            ["run-101.json", "run-203.json", "run-307.json"],
        ] {
            assert!(found(&files).is_none(), "{files:?}");
        }
        assert_eq!(number("a/Run_12/x.json"), Some(12));
        assert_eq!(number("prune3/x.json"), None);
    }
}
