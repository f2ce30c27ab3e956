//! Checks that no repeat is a copy of another repeat.

use plimsoll_evidence::tool_result::{Latency, ToolResult};

use super::super::repeats::Group;
use super::super::{Finding, Severity};
use super::StudyRule;

/// If at least this number of latency figures of one kind of operation are equal, coincidence is
/// excluded.
const EQUAL_MIN: usize = 3;

pub const RULE: StudyRule = StudyRule {
    id: "repeats-copied",
    asks: "is each repeat a separate run?",
    explains: "Two runs never have the same figures: their operations, bytes, times and latencies \
               differ in the last digits. The rule compares repeats that state either the time of \
               the run, or the mean, an extreme and the deviation of latencies. If all figures of \
               two repeats are equal, one repeat is a copy, and the two show no spread.",
    check,
};

fn check(_: &[&ToolResult], groups: &[Group<'_>]) -> Vec<(usize, Finding)> {
    groups.iter().flat_map(copies).collect()
}

/// Returns a finding for each repeat that is a copy of an earlier repeat.
fn copies(group: &Group<'_>) -> Vec<(usize, Finding)> {
    let results = &group.results;
    let copy = |index: usize| {
        let first = (0..index).find(|first| is_copy(results[*first], results[index]))?;
        let [original, copy] = [first, index].map(|at| results[at].label());
        let says = format!("{copy} is a copy of {original}: all figures are equal");
        let finding = Finding::new(Severity::Doubtful, says)
            .with_fields([copy, original])
            .with_request("the output of each run");
        Some((*group.at.get(index)?, finding))
    };
    (1..results.len()).filter_map(copy).collect()
}

fn is_copy(one: &ToolResult, other: &ToolResult) -> bool {
    // The user may have listed the same file twice.
    if one.label() == other.label() || one.parts != other.parts {
        return false;
    }
    let time = one.source.taken_unix_s;
    let measured = |latency: &Latency| {
        let figures = [&latency.min_ns, &latency.mean_ns, &latency.max_ns, &latency.stddev_ns];
        let mut values: Vec<f64> = figures.into_iter().flatten().map(|f| f.value).collect();
        values.retain(|value| *value > 0.0);
        values.dedup();
        values.len() >= EQUAL_MIN
    };
    let mut latencies = one.operations().flat_map(|(_, operation)| &operation.latencies);
    time.is_some() && time == other.source.taken_unix_s || latencies.any(measured)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::Figure;

    use super::super::audits;
    use super::super::fixtures::reads;
    use super::*;
    use crate::conservation::DeclaredFacts;

    /// Returns the findings on three repeats with these mean latencies.
    fn found(means: [f64; 3], max: Option<f64>, time: Option<f64>) -> Vec<String> {
        let repeat = |(n, mean): (usize, f64)| {
            let mut result = reads("fio", &format!("run{n}.json"), 10_000.0);
            let figure = |value: f64| Some(Figure::exact(value, "lat"));
            result.parts[0].operations[0].latencies = vec![Latency {
                mean_ns: figure(mean),
                max_ns: max.and_then(figure),
                stddev_ns: max.and_then(|max| figure(max / 7.0)),
                ..Latency::default()
            }];
            result.source.taken_unix_s = time;
            result
        };
        let all: Vec<ToolResult> = means.into_iter().enumerate().map(repeat).collect();
        let all: Vec<&ToolResult> = all.iter().collect();
        let audits = audits(&all, &DeclaredFacts::default());
        let findings = audits.into_iter().flat_map(|audit| audit.findings);
        findings.filter(|f| f.rule == RULE.id).map(|finding| finding.says).collect()
    }

    #[test]
    fn a_copy_of_a_repeat_is_named() {
        let copied = found([1234.5, 1240.5, 1234.5], Some(9876.0), None);
        assert_eq!(copied, ["run2.json is a copy of run0.json: all figures are equal"]);
        assert!(found([1234.5, 1240.5, 1234.6], Some(9876.0), None).is_empty());
        // One figure may be equal by chance, but not at the same time.
        assert!(found([1234.5, 1240.5, 1234.5], None, None).is_empty());
        assert_eq!(found([1234.5, 1240.5, 1234.5], None, Some(1.7e9)).len(), 1);
    }
}
