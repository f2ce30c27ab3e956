//! Checks that no operation took longer than the run that includes it.

use plimsoll_evidence::tool_result::{Figure, Kind, Latency, Operation, Part, Stage, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{bandwidth, counter_reset, first, rate, usable, whose, window};

pub const RULE: Rule = Rule {
    id: "latency-within-run",
    asks: "did an operation take longer than the run in which it is counted?",
    explains: "An operation that starts and ends within a run cannot take longer than the run. If \
               an operation took longer, it ended after the interval that was used to compute the \
               rates: its bytes are counted, but not all of its time. The whole load took at least \
               as long as this operation, so the bandwidth is at most the bytes divided by the time \
               of this operation. A warm-up before the run is added to the length of the run. If \
               the result does not state the warm-up, and operations may have been in flight at its \
               end, the outcome is unknown. Flushes are checked only if they have a separate run \
               time.",
    needs: "a latency and the length of the run",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        // The run time of the data operations does not include a flush after them.
        if operation.kind == Kind::Sync && operation.window_ns.is_none() {
            continue;
        }
        let Some(window) = window(part, operation) else { continue };
        if counter_reset::may_verify_meanwhile(part, operation) {
            continue;
        }
        // Some load generators stop issuing requests at the end of the run, but still count
        // requests that complete later.
        let whole = operation.latencies.iter().filter(|l| l.stage != Stage::Request);
        let longest = whole.filter_map(longest);
        if let Some((figure, word)) = longest.max_by(|a, b| a.0.least.total_cmp(&b.0.least)) {
            // If the tool does not state the length of a warm-up, the start of the operation is
            // unknown.
            if part.setting.warm_up_ns.is_none()
                && counter_reset::may_begin_before(part, operation)
                && figure.least > window.most
            {
                continue;
            }
            outcome.check(compare_with_run(part, operation, figure, &word, window));
        }
    }
    outcome
}

/// Returns the longest stated latency and its name.
fn longest(latency: &Latency) -> Option<(&Figure, String)> {
    let tail = latency.percentiles.iter().map(|p| (&p.ns, format::quantile(p.quantile)));
    let mean = latency.mean_ns.as_ref().map(|mean| (mean, "mean".to_owned()));
    let max = latency.max_ns.as_ref().map(|max| (max, "longest".to_owned()));
    let all = max.into_iter().chain(tail).chain(mean).filter(|(figure, _)| usable(figure));
    all.max_by(|a, b| a.0.least.total_cmp(&b.0.least))
}

fn compare_with_run(
    part: &Part,
    operation: &Operation,
    longest: &Figure,
    word: &str,
    window: &Figure,
) -> Option<Finding> {
    let warm_up = part.setting.warm_up_ns.as_ref().filter(|w| usable(w));
    let length = Span::from(window).plus(warm_up.map_or(Span::exact(0.0), Span::from));
    if longest.least <= length.most {
        return None;
    }
    let ratio = longest.value / length.value;
    let [longest_says, length_says] = format::distinct(format::time, [longest.value, length.value]);
    let late = format::time(longest.value - length.value);
    let mut says = format!(
        "{}the {word} latency is {longest_says}, but the rates were computed with a run time of \
         {length_says}: operations that ended {late} or more after this time are included",
        whose(part, operation),
    );
    let mut fields = vec![longest.field.clone(), window.field.clone()];
    if let Some((stated, of)) = bandwidth(part, operation) {
        says.push_str(&format!(
            "; in at least {}, {} are at most {}: the bandwidth is overstated {} or more",
            format::time(longest.value),
            first(&operation.bytes).map_or_else(
                || format::bytes(stated.value * window.value / 1e9),
                |bytes| format::bytes(bytes.value)
            ),
            format::bytes_per_s(stated.value / ratio),
            format::times(ratio)
        ));
        fields.extend(of);
    } else if let Some((stated, of)) = rate(part, operation) {
        says.push_str(&format!(
            "; the rate of {}/s is overstated {} or more",
            format::number(stated.value),
            format::times(ratio)
        ));
        fields.extend(of);
    }
    Some(Finding::new(Severity::Impossible, says).with_fields(fields).with_request(
        "the end time of the last counted operation, and the operations and bytes counted up to the \
         end of the run",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn result(longest_s: f64, window_s: f64) -> ToolResult {
        let mut operation = Operation::of(Kind::Read);
        operation.bytes = vec![Figure::exact(300e9, "bytes")];
        operation.latencies = vec![Latency {
            max_ns: Some(Figure::exact(longest_s * 1e9, "max")),
            ..Latency::default()
        }];
        let window_ns = Some(Figure::exact(window_s * 1e9, "elapsed"));
        ToolResult {
            parts: vec![Part { window_ns, operations: vec![operation], ..Part::default() }],
            ..ToolResult::default()
        }
    }

    #[test]
    fn an_operation_that_outlasts_the_run_overstates_the_bandwidth() {
        let outcome = check(&result(492.0, 300.0), &DeclaredFacts::default());
        assert_eq!(outcome.findings[0].severity, Severity::Impossible);
        assert!(outcome.findings[0].says.contains("1.64 times"), "{}", outcome.findings[0].says);
        assert!(
            outcome.findings[0].says.contains("at most 609.8 MB/s"),
            "{}",
            outcome.findings[0].says
        );
        assert_eq!(outcome.findings[0].fields[..2], ["max", "elapsed"]);
    }

    #[test]
    fn a_flush_after_the_writes_may_take_longer_than_they() {
        let mut reported = result(0.108, 0.002);
        reported.parts[0].operations[0].kind = Kind::Sync;
        assert!(check(&reported, &DeclaredFacts::default()).findings.is_empty());
        reported.parts[0].operations[0].window_ns = reported.parts[0].window_ns.clone();
        assert_eq!(check(&reported, &DeclaredFacts::default()).findings.len(), 1);
    }

    #[test]
    fn one_as_long_as_the_run_or_its_warm_up_is_possible() {
        assert!(check(&result(300.0, 300.0), &DeclaredFacts::default()).findings.is_empty());
        let mut reported = result(302.0, 300.0);
        reported.parts[0].setting.warm_up_ns = Some(Figure::exact(5e9, "ramp_time"));
        assert!(check(&reported, &DeclaredFacts::default()).findings.is_empty());
    }
}
