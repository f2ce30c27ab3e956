//! Checks that no figure shows work while another figure shows that no work was done.

use plimsoll_evidence::tool_result::{Figure, Operation, Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{usable, whose};

pub const RULE: Rule = Rule {
    id: "contradiction",
    asks: "is one figure zero although another figure shows that work was done?",
    explains: "The rule fails if a result has data operations but no bytes, bytes but no \
     operations, a rate without operations and bytes, or a rate for a run time of zero. One of the \
     figures was then not counted. It also fails for negative amounts. A zero that means `not \
     counted` would later appear as a bandwidth or a share of zero.",
    needs: "two figures for the amount of work",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        negative(&mut outcome, part, operation);
        let is_timeless = window(part, operation).is_some_and(|window| window.most == 0.0);
        let amounts: Vec<(&str, &Figure)> = [
            ("operations", operation.count.first()),
            ("operations per second", operation.rate_per_s.first()),
            ("bytes", operation.bytes.first()),
            ("bytes per second", operation.bandwidth_per_s.first()),
        ]
        .into_iter()
        .filter(|(word, _)| operation.kind.moves_data() || word.starts_with("operations"))
        // If the run time is zero or unknown, a rate of zero is no contradiction.
        .filter(|(word, figure)| {
            !(is_timeless && word.ends_with("second") && figure.is_some_and(|f| f.value == 0.0))
        })
        .filter_map(|(word, figure)| figure.filter(|f| usable(f)).map(|figure| (word, figure)))
        .collect();
        if amounts.len() < 2 {
            continue;
        }
        let rate = amounts.iter().find(|(word, f)| word.ends_with("second") && f.least > 0.0);
        // A time that is shorter than the unit of the last digit is printed as zero. No rate can be
        // computed from a time of zero.
        if let Some(((word, rate), window)) =
            rate.zip(window(part, operation)).filter(|_| is_timeless)
        {
            let says = format!(
                "{}{} {word}, but the run time is 0",
                whose(part, operation),
                format::number(rate.value)
            );
            outcome.check(Some(
                Finding::new(Severity::Impossible, says)
                    .with_fields([&window.field, &rate.field])
                    .with_request("the run time"),
            ));
        }
        let some = amounts.iter().find(|(_, figure)| figure.least > 0.0);
        let none = amounts.iter().find(|(_, figure)| figure.most <= 0.0);
        outcome.check(some.zip(none).map(|((did, some), (did_not, none))| {
            let says = format!(
                "{}{} {did}, but {} {did_not}",
                whose(part, operation),
                format::number(some.value),
                format::number(none.value)
            );
            Finding::new(Severity::Impossible, says)
                .with_fields([&none.field, &some.field])
                .with_request("which of the two figures the tool really counted")
        }));
    }
    outcome
}

fn negative(outcome: &mut RuleResult, part: &Part, operation: &Operation) {
    let latencies = operation.latencies.iter();
    let latencies =
        latencies.flat_map(|l| [&l.min_ns, &l.mean_ns, &l.max_ns, &l.stddev_ns]).flatten();
    let amounts =
        [&operation.count, &operation.bytes, &operation.rate_per_s, &operation.bandwidth_per_s];
    let figures = amounts.into_iter().flatten().chain(latencies).chain(window(part, operation));
    for figure in figures {
        if figure.most < 0.0 {
            let says = format!(
                "{}{} is negative: {}",
                whose(part, operation),
                figure.field,
                format::number(figure.value)
            );
            outcome.check(Some(
                Finding::new(Severity::Impossible, says)
                    .with_fields([&figure.field])
                    .with_request("whether a counter overflowed or a clock was set back"),
            ));
        }
    }
}

fn window<'r>(part: &'r Part, operation: &'r Operation) -> Option<&'r Figure> {
    operation.window_ns.as_ref().or(part.window_ns.as_ref())
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Kind;

    use super::*;

    fn findings(kind: Kind, count: f64, bytes: f64) -> usize {
        let operation = Operation {
            count: vec![Figure::exact(count, "count")],
            bytes: vec![Figure::exact(bytes, "bytes")],
            ..Operation::of(kind)
        };
        let parts = vec![Part { operations: vec![operation], ..Part::default() }];
        check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default())
            .findings
            .len()
    }

    #[test]
    fn a_rate_needs_a_time() {
        let with = |rate: f64, window_ns: Figure| {
            let operation = Operation {
                count: vec![Figure::exact(34_220.0, "count")],
                rate_per_s: vec![Figure::exact(rate, "iops")],
                window_ns: Some(window_ns),
                ..Operation::of(Kind::Read)
            };
            let parts = vec![Part { operations: vec![operation], ..Part::default() }];
            let reported = ToolResult { parts, ..ToolResult::default() };
            check(&reported, &DeclaredFacts::default()).findings.len()
        };
        let findings = |window_ns| with(17_101.0, window_ns);
        assert_eq!(with(0.0, Figure::exact(0.0, "runtime")), 0, "in less than 1 ms");
        assert_eq!(with(0.0, Figure::exact(1e6, "runtime")), 1);
        assert_eq!(findings(Figure::exact(0.0, "runtime")), 1);
        assert_eq!(findings(Figure::exact(2e9, "runtime")), 0);
        assert_eq!(findings(Figure::rounded(0.0, 1e6, "runtime")), 0);
    }

    #[test]
    fn operations_without_bytes_contradict_themselves() {
        assert_eq!(findings(Kind::Write, 810.0, 4096.0), 0);
        assert_eq!(findings(Kind::Write, 810.0, 0.0), 1);
        assert_eq!(findings(Kind::Write, 0.0, 4096.0), 1);
        assert_eq!(findings(Kind::Write, 0.0, 0.0), 0);
        assert_eq!(findings(Kind::Name("stat".into()), 810.0, 0.0), 0);
        assert_eq!(findings(Kind::Write, -5.0, -1.0), 2);
    }
}
