//! Checks that no operation lasted longer than its run.

use plimsoll_evidence::tool_result::{Figure, Latency, Operation, Part, Stage, ToolResult};

use super::super::{Declared, Finding, Gravity, Rule, Seen, Span, words};
use super::{bandwidth, counter_reset, first, rate, usable, whose, window};

pub const RULE: Rule = Rule {
    id: "latency-within-run",
    asks: "did an operation last longer than the run that it is counted in?",
    explains: "An operation that begins and ends within a run is no longer than the run. One that is \
        longer ended after the time by which the rates were divided: what it moved is counted and the \
        time in which it moved it is not. All that is counted took at least as long as the longest \
        operation, so the bandwidth is at most the bytes over that. A warm-up before the run is added to \
        its length. If the form does not print the warm-up, and the amounts allow that operations were in \
        flight when it ended, the answer is unknown.",
    needs: "a latency and the length of the run",
    check,
};

fn check(reported: &ToolResult, _: &Declared) -> Seen {
    let mut seen = Seen::default();
    for (part, operation) in reported.operations() {
        let Some(window) = window(part, operation) else { continue };
        if counter_reset::may_verify_meanwhile(part, operation) {
            continue;
        }
        // A generator that stops issuing at the end of the run still counts the requests that end
        // later.
        let whole = operation.latencies.iter().filter(|l| l.stage != Stage::Request);
        let longest = whole.filter_map(longest);
        if let Some((figure, word)) = longest.max_by(|a, b| a.0.least.total_cmp(&b.0.least)) {
            // If the tool does not state a warm-up, its length is unknown, and so is the start of
            // the operation.
            if part.setting.warm_up_ns.is_none()
                && counter_reset::may_begin_before(part, operation)
                && figure.least > window.most
            {
                continue;
            }
            seen.check(against(part, operation, figure, &word, window));
        }
    }
    seen
}

/// Returns the longest stated latency and its name.
fn longest(latency: &Latency) -> Option<(&Figure, String)> {
    let tail = latency.percentiles.iter().map(|p| (&p.ns, words::quantile(p.quantile)));
    let mean = latency.mean_ns.as_ref().map(|mean| (mean, "mean".to_owned()));
    let max = latency.max_ns.as_ref().map(|max| (max, "longest".to_owned()));
    let all = max.into_iter().chain(tail).chain(mean).filter(|(figure, _)| usable(figure));
    all.max_by(|a, b| a.0.least.total_cmp(&b.0.least))
}

fn against(
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
    let late = words::time(longest.value - length.value);
    let mut says = format!(
        "{}the {word} latency is {}, and the run that the figures are divided by is {}: operations \
         ended {late} or more after it and are counted",
        whose(part, operation),
        words::time(longest.value),
        words::time(length.value),
    );
    let mut fields = vec![longest.field.clone(), window.field.clone()];
    if let Some((stated, of)) = bandwidth(part, operation) {
        says.push_str(&format!(
            "; over {} at least, {} are {} at most: overstated {} or more",
            words::time(longest.value),
            first(&operation.bytes).map_or_else(
                || words::bytes(stated.value * window.value / 1e9),
                |bytes| words::bytes(bytes.value)
            ),
            words::bytes_per_s(stated.value / ratio),
            words::times(ratio)
        ));
        fields.extend(of);
    } else if let Some((stated, of)) = rate(part, operation) {
        says.push_str(&format!(
            "; the rate of {}/s is overstated {} or more",
            words::number(stated.value),
            words::times(ratio)
        ));
        fields.extend(of);
    }
    Some(
        Finding::new(Gravity::Impossible, says)
            .of(fields)
            .ask("when the last counted operation ended, and the amounts up to the end of the run"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::Kind;

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
        let seen = check(&result(492.0, 300.0), &Declared::default());
        assert_eq!(seen.findings[0].gravity, Gravity::Impossible);
        assert!(seen.findings[0].says.contains("1.64 times"), "{}", seen.findings[0].says);
        assert!(seen.findings[0].says.contains("609.8 MB/s at most"), "{}", seen.findings[0].says);
        assert_eq!(seen.findings[0].fields[..2], ["max", "elapsed"]);
    }

    #[test]
    fn one_as_long_as_the_run_or_its_warm_up_is_possible() {
        assert!(check(&result(300.0, 300.0), &Declared::default()).findings.is_empty());
        let mut reported = result(302.0, 300.0);
        reported.parts[0].setting.warm_up_ns = Some(Figure::exact(5e9, "ramp_time"));
        assert!(check(&reported, &Declared::default()).findings.is_empty());
    }
}
