//! Checks whether a published figure is the best of its repeats, or the mean of the best repeats.

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, ToolResult};

use super::super::repeats::Group;
use super::super::rules::{usable, window};
use super::super::{Finding, Severity, Span, format};
use super::{StudyRule, directory};

/// Minimum number of repeats at which a selection can be detected.
const REPEATS_MIN: usize = 3;
/// The figure must differ from the mean of all repeats by at least this share. Smaller differences
/// do not matter.
const ABOVE_MIN: f64 = 0.01;
/// The difference from the mean must be at least this multiple of the figure's rounding, for each
/// selection of repeats that is compared with the figure.
const FINER: f64 = 8.0;

pub const RULE: StudyRule = StudyRule {
    id: "best-of-repeats",
    asks: "does a figure that is published together with its repeats describe all repeats, or only \
           the best?",
    explains: "The rule compares the figure of a table, a report or another result with the repeats \
               of one run, which are in subdirectories of the result's directory. If the figure is \
               the mean, median or minimum of all repeats, it describes all of them. The rule fails \
               if the figure equals the best repeat, or the mean of some of the best repeats, \
               within the rounding of its digits, and is at least 1 % better than the mean of all \
               repeats. The other repeats were then left out. The rule applies only if the figure \
               has enough digits to exclude coincidence. It never applies to rows that list the \
               repeats one by one.",
    check,
};

fn check(results: &[&ToolResult], groups: &[Group<'_>]) -> Vec<(usize, Finding)> {
    let mut findings = Vec::new();
    let repeated: Vec<usize> = groups.iter().flat_map(|group| group.at.iter().copied()).collect();
    for group in groups.iter().filter(|group| group.results.len() >= REPEATS_MIN) {
        let above = |result: &ToolResult| {
            let home = directory(result);
            let below = |file: &str| {
                home.is_empty() || file.strip_prefix(home).is_some_and(|rest| rest.starts_with('/'))
            };
            group.results.iter().all(|repeat| below(&repeat.source.file))
        };
        let others: Vec<(usize, &ToolResult)> = results
            .iter()
            .enumerate()
            .filter(|(at, result)| !repeated.contains(at) && above(result))
            .map(|(at, result)| (at, *result))
            .collect();
        for (at, result) in &others {
            // Rows that list all repeats do not select any of them.
            let same_file: Vec<&ToolResult> = others
                .iter()
                .filter(|(other, r)| other != at && r.source.file == result.source.file)
                .map(|(_, r)| *r)
                .collect();
            findings
                .extend(find_selection(result, &same_file, group).map(|finding| (*at, finding)));
        }
    }
    findings
}

/// Quantity whose higher values are better: a stated figure, or a number of operations or bytes
/// divided by the time.
struct Measure {
    stated: fn(&Operation) -> &[Figure],
    amount: fn(&Operation) -> &[Figure],
    format_value: format::ValueFormatter,
}

const MEASURES: [Measure; 2] = [
    Measure { stated: |o| &o.rate_per_s, amount: |o| &o.count, format_value: per_s },
    Measure {
        stated: |o| &o.bandwidth_per_s,
        amount: |o| &o.bytes,
        format_value: format::bytes_per_s,
    },
];

impl Measure {
    /// Returns the figure with the most digits, and its field.
    fn read(&self, part: &Part, operation: &Operation) -> Option<(Span, String)> {
        let stated = (self.stated)(operation).iter().filter(|figure| usable(figure));
        let stated = stated.map(|figure| (Span::from(figure), figure.field.clone()));
        let amounts = (self.amount)(operation).iter().filter(|amount| usable(amount));
        let made = amounts.filter_map(|amount| {
            let time = Span::from(window(part, operation)?).scaled(1e-9);
            Some((Span::from(amount).over(time)?, amount.field.clone()))
        });
        let all = stated.chain(made).filter(|(span, _)| span.value > 0.0);
        all.min_by(|a, b| a.0.coarseness().total_cmp(&b.0.coarseness()))
    }
}

fn find_selection(
    result: &ToolResult,
    beside: &[&ToolResult],
    group: &Group<'_>,
) -> Option<Finding> {
    let part = only(result)?;
    for operation in &part.operations {
        for measure in &MEASURES {
            let Some((figure, field)) = measure.read(part, operation) else { continue };
            let alike = |repeat: &&ToolResult| -> Option<Span> {
                let part = only(repeat)?;
                let mut matching = part.operations.iter().filter(|o| same(o, operation));
                let (span, _) = measure.read(part, matching.next()?)?;
                matching.next().is_none().then_some(span)
            };
            let mut values: Vec<Span> = group.results.iter().filter_map(alike).collect();
            if values.len() != group.results.len() {
                continue;
            }
            values.sort_by(|a, b| b.value.total_cmp(&a.value));
            let listed = beside.iter().filter_map(alike).any(|row| {
                values[1..].iter().any(|v| (row.value / v.value - 1.0).abs() < ABOVE_MIN / 2.0)
            });
            if let Some(count) = best(figure, &values).filter(|_| !listed) {
                return Some(finding(figure, field, &values, count, group, measure.format_value));
            }
        }
    }
    None
}

fn per_s(rate: f64) -> String {
    format!("{}/s", format::number(rate))
}

/// Returns the only part of a result. `None` if the result has several parts.
fn only(result: &ToolResult) -> Option<&Part> {
    let mut parts = result.parts.iter().filter(|part| !part.is_total);
    let first = parts.next()?;
    parts.next().is_none().then_some(first)
}

/// Returns true if two operations may have the same kind and size. A property that one of them does
/// not state may be equal.
fn same(one: &Operation, other: &Operation) -> bool {
    let kinds = one.kind == other.kind || one.kind == Kind::All || other.kind == Kind::All;
    let sizes = one.size_bytes.as_ref().zip(other.size_bytes.as_ref());
    kinds && sizes.is_none_or(|(a, b)| Span::from(a).meets(b.into()))
}

fn mean(values: &[Span]) -> Span {
    let sum = Span::sum(values.iter().copied()).unwrap_or(Span::exact(0.0));
    sum.scaled(1.0 / values.len().max(1) as f64)
}

/// Returns the number of best values whose mean equals the figure. `None` if there is no such
/// number, or if the figure may also be the mean of all values. The values must be sorted, with the
/// best value first.
fn best(figure: Span, values: &[Span]) -> Option<usize> {
    let (all, count) = (mean(values), values.len());
    let median = mean(&[values[count / 2], values[(count - 1) / 2]]);
    // Leaving out both the best and the worst value removes outliers without bias.
    let trimmed = mean(&values[1..count - 1]);
    let whole = [all, median, trimmed, values[count - 1]];
    let readings = readings(figure);
    if all.value <= 0.0 || readings.iter().any(|r| whole.iter().any(|value| r.meets(*value))) {
        return None;
    }
    (1..count).find(|first| {
        let best = mean(&values[..*first]);
        let apart = best.value / all.value - 1.0;
        let fine = |reading: &Span| {
            let coarse = reading.coarseness() + best.coarseness();
            coarse * FINER * (count - 1) as f64 <= apart
        };
        apart >= ABOVE_MIN && readings.iter().any(|r| fine(r) && r.meets(best))
    })
}

/// Returns the possible values of a figure in MB. The heading of a table does not always state
/// whether an MB is 10⁶ or 2²⁰ bytes. Each value keeps the precision of the printed digits.
fn readings(figure: Span) -> Vec<Span> {
    const MIB: f64 = 1.048_576;
    let digits = figure.most / figure.least / MIB;
    if !(1.0..MIB).contains(&digits) {
        return vec![figure];
    }
    let decimal = Span { most: figure.least * digits, ..figure };
    let binary = Span { value: figure.value * MIB, least: figure.most / digits, ..figure };
    vec![decimal, binary]
}

fn finding(
    figure: Span,
    field: String,
    values: &[Span],
    count: usize,
    group: &Group<'_>,
    format_value: format::ValueFormatter,
) -> Finding {
    let all = mean(values).value;
    let of = match count {
        1 => "the best".to_owned(),
        count => format!("the mean of the best {count}"),
    };
    let says = format!(
        "{} is {of} of {} repeats ({}); the mean of all repeats is {}, and the lowest repeat is {}: \
         the mean is {} lower than the stated figure",
        format_value(figure.value),
        values.len(),
        group.label,
        format_value(all),
        format_value(values[values.len() - 1].value),
        format::percent(1.0 - all / figure.value)
    );
    let repeats = group.results.iter().take(8).map(|result| result.label());
    Finding::new(Severity::Doubtful, says)
        .with_fields(std::iter::once(field).chain(repeats))
        .with_request("why the other repeats were left out, and the mean and spread of all of them")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::audits;
    use super::super::fixtures::{reads, repeats};
    use super::*;
    use crate::conservation::DeclaredFacts;

    const RATES: [f64; 5] = [10_012.0, 10_640.0, 9_700.0, 10_233.0, 9_415.0];

    /// Returns the findings on figures in `sut/table.csv`, next to five repeats.
    fn says(printed: &[f64]) -> Vec<String> {
        let mut all = repeats(&RATES);
        all.extend(printed.iter().map(|rate| reads("", "sut/table.csv", *rate)));
        all.iter_mut()
            .skip(5)
            .enumerate()
            .for_each(|(n, row)| row.source.place = Some(format!("line {n}")));
        let all: Vec<&ToolResult> = all.iter().collect();
        let findings =
            audits(&all, &DeclaredFacts::default()).into_iter().flat_map(|audit| audit.findings);
        findings.filter(|f| f.rule == RULE.id).map(|finding| finding.says).collect()
    }

    #[test]
    fn the_best_and_the_best_few_are_told_from_all() {
        assert!(
            says(&[10_640.0])[0].contains("10,640/s is the best of 5 repeats"),
            "{:?}",
            says(&[10_640.0])
        );
        assert!(says(&[10_640.0])[0].contains("mean of all repeats is 10,000/s"));
        let three = (10_640.0 + 10_233.0 + 10_012.0) / 3.0;
        assert!(says(&[f64::round(three)])[0].contains("the mean of the best 3 of 5"));
        for whole in [10_000.0, 10_012.0, 9_982.0, 9_415.0, 10_500.0] {
            assert!(says(&[whole]).is_empty(), "{whole}");
        }
        assert!(
            says(&[10_640.0, 9_700.0]).is_empty(),
            "a list of the repeats chooses none of them"
        );
    }

    #[test]
    fn digits_that_are_too_coarse_and_results_from_elsewhere_accuse_nobody() {
        let found = |other: ToolResult| {
            let mut all = repeats(&RATES);
            all.push(other);
            let all: Vec<&ToolResult> = all.iter().collect();
            audits(&all, &DeclaredFacts::default())
                .iter()
                .any(|a| a.findings.iter().any(|f| f.rule == RULE.id))
        };
        assert!(found(reads("", "table.csv", 10_640.0)));
        assert!(!found(reads("", "other/table.csv", 10_640.0)));
        let mut coarse = reads("", "table.csv", 10_640.0);
        coarse.parts[0].operations[0].rate_per_s = vec![Figure::rounded(11_000.0, 1_000.0, "iops")];
        coarse.parts[0].operations[0].bandwidth_per_s.clear();
        assert!(!found(coarse));
        // An MB may be 10⁶ or 2²⁰ bytes. The second value equals the best repeat.
        let mut either = reads("", "table.csv", 10_640.0);
        let (least, most) = (10_640.0 * 4096.0 / 1.048_576 - 2e4, 10_640.0 * 4096.0 + 2e4);
        either.parts[0].operations[0].rate_per_s.clear();
        either.parts[0].operations[0].bandwidth_per_s =
            vec![Figure { value: least + 2e4, least, most, field: "MB/s".into() }];
        assert!(found(either));
        let mut writes = reads("", "table.csv", 10_640.0);
        writes.parts[0].operations[0].kind = Kind::Write;
        assert!(!found(writes));
    }
}
