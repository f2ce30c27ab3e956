//! Checks that the tool did any work.

use plimsoll_evidence::tool_result::{Figure, Operation, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity};

pub const RULE: Rule = Rule {
    id: "nothing-done",
    asks: "did the tool do any work?",
    explains: "If the operations, bytes and rates of a result are all zero, the tool ran but did no \
               work: the target could not be opened, or the load was never issued. Zero is not a \
               measured rate.",
    needs: "a count of operations, a count of bytes, or a rate",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let stated: Vec<&Figure> =
        reported.operations().flat_map(|(_, operation)| figures_of(operation)).collect();
    let Some(first) = stated.first() else { return outcome };
    if stated.iter().all(|figure| figure.value <= 0.0) {
        outcome.check(Some(
            Finding::new(
                Severity::Doubtful,
                "the tool did no work: all its operations, bytes and rates are zero",
            )
            .with_fields([&first.field])
            .with_request("the tool's own log, and a run that did some work"),
        ));
    }
    outcome
}

/// Returns the figures that show whether work was done. If the result has a rate, its bytes are not
/// used, because they may be the planned bytes.
fn figures_of(operation: &Operation) -> impl Iterator<Item = &Figure> {
    let rates = || operation.rate_per_s.iter().chain(&operation.bandwidth_per_s);
    let bytes = operation.bytes.iter().filter(move |_| rates().next().is_none());
    operation.count.iter().chain(bytes).chain(rates())
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Part};

    use super::*;

    #[test]
    fn a_rate_of_zero_is_doubted_and_any_work_is_not() {
        let found = |rate: f64, planned: Option<f64>| {
            let operation = Operation {
                rate_per_s: vec![Figure::exact(rate, "rate")],
                bytes: planned.map(|bytes| Figure::exact(bytes, "size")).into_iter().collect(),
                ..Operation::of(Kind::Read)
            };
            let part = Part { operations: vec![operation], ..Part::default() };
            let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
            check(&reported, &DeclaredFacts::default()).findings.len()
        };
        assert_eq!((found(0.0, None), found(3.0, None)), (1, 0));
        // IOR prints the planned size of the files even if the bandwidth is zero.
        assert_eq!((found(0.0, Some(4e6)), found(3.0, Some(4e6))), (1, 0));
        assert_eq!(check(&ToolResult::default(), &DeclaredFacts::default()), RuleResult::default());
    }
}
