//! Checks that no bandwidth exceeds the rate of the link, and that no operation is faster than any
//! possible link.

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Stage, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{bandwidth, concurrent, moved, of_kind, rate, size, sum_of_rates, usable, whose};

/// Tolerance for the rounding of a declared link rate. It is smaller than the framing overhead of
/// any link.
const LINK_SLACK: f64 = 0.01;
/// Maximum rate of a single transfer. It is eight times the rate of a PCIe 6.0 link with 16 lanes,
/// and twice the rate of all memory channels of a server.
const ANY_PER_S: f64 = 1e12;

pub const RULE: Rule = Rule {
    id: "beyond-any-link",
    asks: "is the bandwidth higher than the link allows, or is an operation faster than any \
           possible link?",
    explains: "The rule compares the read bandwidth and the write bandwidth, each on its own, with \
               the declared rate of the slowest link (`--link`; links are full duplex). The speed \
               of an operation is its size divided by its latency. The fastest read must not be \
               faster than the declared link, and no operation may be faster than 1 TB/s, which is \
               twice the bandwidth of a server's memory. If an operation is faster, its data did \
               not cross the link, it moved no data at all, or a figure is misprinted.",
    needs: "a bandwidth and the link's rate (`--link`), or the size and the latency of an operation",
    check,
};

fn check(reported: &ToolResult, declared: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    if let Some(link) = declared.link_bytes_per_s {
        totals(&mut outcome, reported, link);
    }
    for (part, operation) in reported.operations().filter(|(_, o)| o.kind.moves_data()) {
        // The terse output of fio contains the rates of operations, but not the numbers of bytes.
        let quotient = || bandwidth(part, operation)?.0.over(rate(part, operation)?.0);
        let Some(size) = size(operation).or_else(quotient) else { continue };
        // An operation's latency includes its submission and its completion. If a file is cached,
        // the submission moves the data, and the completion takes no time.
        let submits = operation.latencies.iter().any(|l| l.stage == Stage::Submission);
        let whole = |stage: Stage| match stage {
            Stage::Submission => false,
            Stage::Completion => !submits,
            _ => true,
        };
        let latencies = operation.latencies.iter().filter(|l| whole(l.stage));
        for figure in latencies.filter_map(|l| l.min_ns.as_ref().or(l.mean_ns.as_ref())) {
            if usable(figure) && figure.most > 0.0 {
                outcome.check(one(part, operation, size, figure, declared));
            }
        }
    }
    outcome
}

/// Compares the largest sum over concurrent parts with the link, separately for each direction. A
/// total is used only for a kind of operations that no part has: it may also be a total of phases.
fn totals(outcome: &mut RuleResult, reported: &ToolResult, link: f64) {
    let (totals, parts): (Vec<&Part>, Vec<&Part>) =
        reported.parts.iter().partition(|part| part.is_total);
    let groups = concurrent(parts);
    let totals: Vec<Vec<&Part>> = totals.into_iter().map(|total| vec![total]).collect();
    for kind in [Kind::Read, Kind::Write, Kind::All] {
        let sums = |groups: &[Vec<&Part>]| {
            let sum = |group: &Vec<&Part>| sum_of_rates(&of_kind(group, &kind), moved);
            let sums = groups.iter().filter_map(sum);
            sums.max_by(|(a, _), (b, _)| a.least.total_cmp(&b.least))
        };
        let Some((sum, fields)) = sums(&groups).or_else(|| sums(&totals)) else { continue };
        outcome.check(over_link(&kind, sum, link).map(|finding| finding.with_fields(fields)));
    }
}

/// Checks one sum. If the kind of its operations is unknown, it may contain both reads and writes,
/// which use both directions of the link.
fn over_link(kind: &Kind, sum: Span, link: f64) -> Option<Finding> {
    let ways = if *kind == Kind::All { 2.0 } else { 1.0 };
    let carries = link * ways;
    let word = match kind {
        Kind::Read => "were read",
        Kind::Write => "were written",
        _ => "went",
    };
    let amount = format::bytes_per_s(sum.value);
    let request = "the port counters of the link and of the storage, and the name of any cache \
                   between the load and the link";
    if sum.least > carries * (1.0 + LINK_SLACK) {
        let says = format!(
            "{amount} {word} over a link that transfers at most {}{}: this is {} the maximum",
            format::bytes_per_s(carries),
            if ways > 1.0 { " in both directions together" } else { "" },
            format::times(sum.value / carries)
        );
        return Some(Finding::new(Severity::Impossible, says).with_request(request));
    }
    (sum.least > link * (1.0 + LINK_SLACK)).then(|| {
        let says = format!(
            "{amount} {word} over a link that transfers at most {} in each direction: this is {} \
             the maximum, which is possible only if at least {} went in the other direction",
            format::bytes_per_s(link),
            format::times(sum.value / link),
            format::percent(1.0 - link / sum.value)
        );
        Finding::new(Severity::Doubtful, says).with_request("the share of reads")
    })
}

fn one(
    part: &Part,
    operation: &Operation,
    size: Span,
    latency: &Figure,
    declared: &DeclaredFacts,
) -> Option<Finding> {
    let speed = size.least / latency.most * 1e9;
    let says = |limit: &str| {
        // A latency that is printed as zero is smaller than the unit of its last digit.
        let is_zero = latency.value <= 0.0;
        let (under, above, time) = match is_zero {
            true => ("less than ", "more than ", latency.most),
            false => ("", "", latency.value),
        };
        format!(
            "{}{} in {under}{} is a speed of {above}{}: {limit}",
            whose(part, operation),
            format::transfer(size.value.round()),
            format::time(time),
            format::bytes_per_s(size.value / time * 1e9)
        )
    };
    let fields = [latency.field.clone()];
    if speed > ANY_PER_S {
        return Some(
            Finding::new(Severity::Impossible, says("no link and no memory is this fast"))
                .with_fields(fields)
                .with_request("the unit of the latency, and whether the operation moved its data"),
        );
    }
    let link = declared.link_bytes_per_s?;
    (operation.kind == Kind::Read && speed > link * (1.0 + LINK_SLACK)).then(|| {
        let limit = format!(
            "the link transfers at most {}, so the data did not cross the link",
            format::bytes_per_s(link)
        );
        Finding::new(Severity::Doubtful, says(&limit)).with_fields(fields).with_request(
            "the source of the data, such as the page cache, holes in the file or a client's cache",
        )
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Latency;

    use super::*;

    fn severities(bandwidth: f64, min_ns: f64, link: Option<f64>) -> Vec<Severity> {
        let operation = Operation {
            bandwidth_per_s: vec![Figure::exact(bandwidth, "bw")],
            size_bytes: Some(Figure::exact(1048576.0, "bs")),
            latencies: vec![Latency {
                min_ns: Some(Figure::exact(min_ns, "min")),
                ..Latency::default()
            }],
            ..Operation::of(Kind::Read)
        };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        let declared = DeclaredFacts { link_bytes_per_s: link, ..DeclaredFacts::default() };
        let outcome = check(&ToolResult { parts, ..ToolResult::default() }, &declared);
        outcome.findings.iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_link_carries_what_it_carries() {
        // 1 MiB in 400 us is 2.6 GB/s.
        assert_eq!(severities(3e9, 400e3, None), []);
        assert_eq!(severities(3e9, 400e3, Some(3.125e9)), []);
        assert_eq!(severities(3.2e9, 400e3, Some(3.125e9)), [Severity::Impossible]);
        assert_eq!(severities(3e9, 300e3, Some(3.125e9)), [Severity::Doubtful]);
        // 1 MiB in 900 ns is 1.2 TB/s.
        assert_eq!(severities(3e9, 900.0, None), [Severity::Impossible]);
    }

    #[test]
    fn only_rates_of_concurrent_parts_are_added() {
        let found = |groups: [Option<&str>; 2], seconds: [f64; 2]| {
            let part = |(group, seconds): (Option<&str>, f64)| Part {
                group: group.map(str::to_owned),
                window_ns: Some(Figure::exact(seconds * 1e9, "runtime")),
                operations: vec![Operation {
                    bandwidth_per_s: vec![Figure::exact(2e9, "bw")],
                    ..Operation::of(Kind::Read)
                }],
                ..Part::default()
            };
            let parts = groups.into_iter().zip(seconds).map(part).collect();
            let declared =
                DeclaredFacts { link_bytes_per_s: Some(3.125e9), ..DeclaredFacts::default() };
            check(&ToolResult { parts, ..ToolResult::default() }, &declared).findings.len()
        };
        assert_eq!(found([Some("0"), Some("0")], [60.0, 60.0]), 1);
        assert_eq!(found([Some("0"), Some("1")], [60.0, 60.0]), 0, "stonewall");
        assert_eq!(found([None, None], [60.0, 60.0]), 0, "iterations");
        // 240 GB in 60 s are more than the link transfers; 150 GB are not.
        assert_eq!(found([Some("0"), Some("0")], [60.0, 15.0]), 0, "one job ended early");
    }

    #[test]
    fn a_latency_of_zero_is_less_than_the_last_digit() {
        let min = Figure::truncated(0.0, 1000.0, "min");
        let operation = Operation {
            bandwidth_per_s: vec![Figure::exact(3e9, "bw")],
            size_bytes: Some(Figure::exact(1048576.0, "bs")),
            latencies: vec![Latency { min_ns: Some(min), ..Latency::default() }],
            ..Operation::of(Kind::Read)
        };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        let reported = ToolResult { parts, ..ToolResult::default() };
        let says = check(&reported, &DeclaredFacts::default()).findings.remove(0).says;
        assert!(
            says.contains("1 MiB in less than 1 us is a speed of more than 1.049 TB/s"),
            "{says}"
        );
    }

    #[test]
    fn a_completion_after_a_submission_that_moved_the_data_takes_no_time() {
        let of = |stage: Stage, min_ns: f64| Latency {
            stage,
            min_ns: Some(Figure::exact(min_ns, "min")),
            ..Latency::default()
        };
        let found = |latencies: Vec<Latency>| {
            let operation = Operation {
                size_bytes: Some(Figure::exact(262_144.0, "bs")),
                latencies,
                ..Operation::of(Kind::Read)
            };
            let parts = vec![Part { operations: vec![operation], ..Part::default() }];
            check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default())
                .findings
                .len()
        };
        let (submitted, completed) = (of(Stage::Submission, 8_431.0), of(Stage::Completion, 223.0));
        assert_eq!(found(vec![submitted, completed.clone(), of(Stage::Total, 8_784.0)]), 0);
        assert_eq!(
            found(vec![completed]),
            1,
            "without a submission the completion is all there is"
        );
    }
}
