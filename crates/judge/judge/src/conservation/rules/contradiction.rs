//! Checks that no figure contradicts another on whether any work was done.

use plimsoll_evidence::tool_result::{Figure, Operation, Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{usable, whose};

pub const RULE: Rule = Rule {
    id: "contradiction",
    asks: "does one figure show work that another figure shows as zero?",
    explains: "The rule fails for operations that move data but no bytes, for bytes without \
               operations, for a rate without either, and for negative amounts: one of the two \
               figures was not counted. A zero that means `not counted` would later become a \
               bandwidth or a share of zero.",
    needs: "two figures of the work done",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        negative(&mut outcome, part, operation);
        let amounts: Vec<(&str, &Figure)> = [
            ("operations", operation.count.first()),
            ("operations per second", operation.rate_per_s.first()),
            ("bytes", operation.bytes.first()),
            ("bytes per second", operation.bandwidth_per_s.first()),
        ]
        .into_iter()
        .filter(|(word, _)| operation.kind.moves_data() || word.starts_with("operations"))
        .filter_map(|(word, figure)| figure.filter(|f| usable(f)).map(|figure| (word, figure)))
        .collect();
        if amounts.len() < 2 {
            continue;
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
                .with_request("which of the two was counted")
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
    fn operations_without_bytes_contradict_themselves() {
        assert_eq!(findings(Kind::Write, 810.0, 4096.0), 0);
        assert_eq!(findings(Kind::Write, 810.0, 0.0), 1);
        assert_eq!(findings(Kind::Write, 0.0, 4096.0), 1);
        assert_eq!(findings(Kind::Write, 0.0, 0.0), 0);
        assert_eq!(findings(Kind::Name("stat".into()), 810.0, 0.0), 0);
        assert_eq!(findings(Kind::Write, -5.0, -1.0), 2);
    }
}
