//! Checks that the rate did not exceed the requested limit.

use plimsoll_evidence::tool_result::{Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{bandwidth, rate, usable};

/// Share by which tools may exceed a limit that they enforce.
const OVERSHOOT: f64 = 0.05;

pub const RULE: Rule = Rule {
    id: "rate-limit",
    asks: "does a rate exceed the limit that was set?",
    explains: "Tools exceed a limit on rate or bandwidth by at most 5 %. A higher result was \
               measured with other options than the printed ones. A result at its limit shows the \
               requested rate, not the maximum of the storage.",
    needs: "a limit on the rate, and the rate",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        type FigureReader =
            fn(&Part, &plimsoll_evidence::tool_result::Operation) -> Option<(Span, Vec<String>)>;
        let limits: [(_, FigureReader, format::ValueFormatter); 2] = [
            (&part.setting.rate_limit_per_s, rate, super::per_s),
            (&part.setting.bandwidth_limit_per_s, bandwidth, format::bytes_per_s),
        ];
        for (limit, read_figure, format_value) in limits {
            let Some(limit) = limit.as_ref().filter(|limit| usable(limit) && limit.value > 0.0)
            else {
                continue;
            };
            for operation in part.operations.iter().filter(|o| o.kind.moves_data()) {
                let Some((achieved, fields)) = read_figure(part, operation) else { continue };
                outcome.check((achieved.least > limit.most * (1.0 + OVERSHOOT)).then(|| {
                    let says = format!(
                        "{} {} is more than the limit of {}",
                        operation.kind.word(),
                        format_value(achieved.value),
                        format_value(limit.value)
                    );
                    Finding::new(Severity::Doubtful, says)
                        .with_fields(fields.into_iter().chain([limit.field.clone()]))
                        .with_request("the options of the run")
                }));
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Operation};

    use super::*;

    #[test]
    fn a_limit_that_was_not_kept_is_another_run() {
        let findings = |achieved: f64| {
            let mut part = Part {
                operations: vec![Operation {
                    rate_per_s: vec![Figure::exact(achieved, "iops")],
                    ..Operation::of(Kind::Read)
                }],
                ..Part::default()
            };
            part.setting.rate_limit_per_s = Some(Figure::exact(1000.0, "rate_iops"));
            check(
                &ToolResult { parts: vec![part], ..ToolResult::default() },
                &DeclaredFacts::default(),
            )
            .findings
            .len()
        };
        assert_eq!((findings(1010.0), findings(1200.0)), (0, 1));
    }
}
