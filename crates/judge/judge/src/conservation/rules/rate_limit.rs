//! Checks that the rate does not exceed the limit that was requested.

use plimsoll_evidence::tool_result::{Kind, Operation, Part, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{bandwidth, rate, size, usable, window};

/// Tolerance: a tool may exceed its own limit by this share.
const OVERSHOOT: f64 = 0.05;

pub const RULE: Rule = Rule {
    id: "rate-limit",
    asks: "does a rate exceed the limit in the tool's options?",
    explains: "Tools exceed a limit on rate or bandwidth by at most 5 %, and issue the first \
     operation of each thread without a delay. Verification reads of a job that only writes have \
     no limit. If the result is higher, it was measured with options that differ from the printed \
     options. A result that equals its limit shows the requested rate, not the maximum of the \
     storage.",
    needs: "a limit on the rate, and the rate",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        type FigureReader = fn(&Part, &Operation) -> Option<(Span, Vec<String>)>;
        let limits: [(_, FigureReader, format::ValueFormatter, _); 2] = [
            (&part.setting.rate_limit_per_s, rate, super::per_s, false),
            (&part.setting.bandwidth_limit_per_s, bandwidth, format::bytes_per_s, true),
        ];
        for (limit, read_figure, format_value, in_bytes) in limits {
            let Some(limit) = limit.as_ref().filter(|limit| usable(limit) && limit.value > 0.0)
            else {
                continue;
            };
            let is_limited = |o: &&Operation| o.kind.moves_data() && !verifies(part, o);
            for operation in part.operations.iter().filter(is_limited) {
                let Some((achieved, fields)) = read_figure(part, operation) else { continue };
                let first_bytes = if in_bytes { size(operation) } else { Some(Span::exact(1.0)) };
                let free =
                    first_bytes.map_or(0.0, |first| first.most) * firsts_per_s(part, operation);
                outcome.check((achieved.least - free > limit.most * (1.0 + OVERSHOOT)).then(
                    || {
                        let says = format!(
                            "{} at {}: this is more than the limit of {}",
                            operation.kind.word(),
                            format_value(achieved.value),
                            format_value(limit.value)
                        );
                        Finding::new(Severity::Doubtful, says)
                            .with_fields(fields.into_iter().chain([limit.field.clone()]))
                            .with_request("the options of the run")
                    },
                ));
            }
        }
    }
    outcome
}

/// Returns true if the operations are reads of a write-only job, which verify its writes.
fn verifies(part: &Part, operation: &Operation) -> bool {
    let writes_only = part.setting.read_percent.as_ref().is_some_and(|p| p.value <= 0.0);
    operation.kind == Kind::Read && writes_only
}

/// Returns the rate of the first operations of all threads; 0 if the run time is unknown.
fn firsts_per_s(part: &Part, operation: &Operation) -> f64 {
    let threads = part.setting.threads.as_ref().filter(|t| usable(t)).map_or(1.0, |t| t.most);
    let window_s = window(part, operation).map(|window| window.least / 1e9);
    window_s.filter(|seconds| *seconds > 0.0).map_or(0.0, |seconds| threads / seconds)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Figure;

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

    #[test]
    fn the_first_operation_and_verification_reads_have_no_limit() {
        let findings = |kind, count: f64| {
            let mut part = Part {
                operations: vec![Operation {
                    count: vec![Figure::exact(count, "total_ios")],
                    window_ns: Some(Figure::exact(301e6, "runtime")),
                    ..Operation::of(kind)
                }],
                ..Part::default()
            };
            part.setting.rate_limit_per_s = Some(Figure::exact(50.0, "rate_iops"));
            part.setting.read_percent = Some(Figure::exact(0.0, "rw"));
            let parts = vec![part];
            check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default())
                .findings
                .len()
        };
        assert_eq!((findings(Kind::Write, 16.0), findings(Kind::Write, 18.0)), (0, 1));
        assert_eq!(findings(Kind::Read, 1600.0), 0);
    }
}
