//! Rules that compare all results of a study with each other. They detect facts that no single
//! result shows, for example that a figure is the best of its repeats.

use plimsoll_evidence::tool_result::ToolResult;

use super::repeats::{Group, groups};
use super::{Audit, DeclaredFacts, Finding, audit};

mod best_of_repeats;
mod repeats_copied;
mod repeats_missing;

/// Rule that judges all results of a study together.
pub struct StudyRule {
    /// Identifier.
    pub id: &'static str,
    /// Question that the rule answers, in one line.
    pub asks: &'static str,
    /// How the rule works, its tolerance, and the meaning of a failure.
    pub explains: &'static str,
    /// Checks all results and the groups of repeats among them. Each finding is returned with the
    /// index of its result.
    check: fn(&[&ToolResult], &[Group<'_>]) -> Vec<(usize, Finding)>,
}

pub const ALL: &[StudyRule] = &[best_of_repeats::RULE, repeats_copied::RULE, repeats_missing::RULE];

/// Judges each result of a study separately, then all results together. Returns the verdicts in the
/// order of the results.
pub fn audits(results: &[&ToolResult], declared: &DeclaredFacts) -> Vec<Audit> {
    let mut audits: Vec<Audit> = results.iter().map(|result| audit(result, declared)).collect();
    let groups = groups(results.iter().copied());
    for rule in ALL {
        for (at, finding) in (rule.check)(results, &groups) {
            if let Some(audit) = audits.get_mut(at) {
                audit.add([Finding { rule: rule.id.to_owned(), ..finding }]);
            }
        }
    }
    audits
}

/// Returns the directory of a result's file.
fn directory(result: &ToolResult) -> &str {
    result.source.file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Results for the tests of these rules.
#[cfg(test)]
mod fixtures {
    use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Source, ToolResult};

    /// Returns a result with 4 KiB reads at this rate, printed as whole numbers.
    pub(super) fn reads(tool: &str, file: &str, rate: f64) -> ToolResult {
        let operation = Operation {
            rate_per_s: vec![Figure::rounded(rate, 1.0, "iops")],
            size_bytes: Some(Figure::exact(4096.0, "bs")),
            bandwidth_per_s: vec![Figure::rounded(rate * 4096.0, 4096.0, "bw")],
            ..Operation::of(Kind::Read)
        };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        let source = Source { tool: tool.into(), file: file.into(), ..Source::default() };
        ToolResult { parts, ..ToolResult::new(source) }
    }

    /// Returns repeats of one run, each in a separate directory.
    pub(super) fn repeats(rates: &[f64]) -> Vec<ToolResult> {
        let each = rates.iter().enumerate();
        each.map(|(n, rate)| reads("fio", &format!("sut/run{}/r.json", n + 1), *rate)).collect()
    }
}
