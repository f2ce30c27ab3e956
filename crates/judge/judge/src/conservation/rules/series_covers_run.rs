//! Checks that a log includes the whole run that the figures describe.

use plimsoll_evidence::tool_result::{Part, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::usable;

/// A log may end before or after the end of the run by at most this share of the run.
const MISSED_MAX: f64 = 0.1;
/// A log may end before or after the end of the run by at most this number of intervals. This limit
/// applies to long intervals.
const INTERVALS_MAX: f64 = 2.5;
/// A log may end before or after the end of the run by at most this time in seconds. This limit
/// applies to short runs.
const SECONDS_MAX: f64 = 1.5;

pub const RULE: Rule = Rule {
    id: "series-covers-run",
    asks: "does the log of a result include the whole run that the figures describe?",
    explains: "If a log ends before the end of the run, the log was cut off, or the run did nothing \
               at its end. If a log continues after the run, it contains operations that the \
               figures should not include. The two ends may differ by a tenth of the run, two \
               intervals or 1.5 s, whichever is longest.",
    needs: "an interval log and the length of the run",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for part in &reported.parts {
        let Some(window) = part.window_ns.as_ref().filter(|w| usable(w) && w.value > 0.0) else {
            continue;
        };
        for series in
            part.series.iter().filter(|series| !series.points.is_empty() && !series.partial)
        {
            outcome.check(finding(part, series, window.value / 1e9, &window.field));
        }
    }
    outcome
}

fn finding(part: &Part, series: &Series, window_s: f64, window_field: &str) -> Option<Finding> {
    let end = series.points.iter().map(|point| point.at_s).fold(0.0, f64::max);
    let interval = series.interval_s.unwrap_or(0.0);
    let allowed = (window_s * MISSED_MAX).max(interval * INTERVALS_MAX).max(SECONDS_MAX);
    let warm_up = part.setting.warm_up_ns.as_ref().map_or(0.0, |w| w.value / 1e9);
    let (run, log) = (format::time(window_s * 1e9), format::time(end * 1e9));
    let fields = [series.field.as_str(), window_field];
    if end < window_s - allowed {
        let says = format!(
            "the log of the {} of {} ends after {log}, but the run took {run}: {} of the run is \
             missing",
            series.quantity.word(),
            series.kind.word(),
            format::percent(1.0 - end / window_s)
        );
        return Some(
            Finding::new(Severity::Doubtful, says)
                .with_fields(fields)
                .with_request("the complete log"),
        );
    }
    (end > window_s + warm_up + allowed).then(|| {
        let says = format!(
            "the log of the {} of {} continues to {log}, but the run time used for the figures is \
             {run}",
            series.quantity.word(),
            series.kind.word(),
        );
        Finding::new(Severity::Doubtful, says)
            .with_fields(fields)
            .with_request("the counters at the end of the run")
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Point, Quantity, Stage};

    use super::*;

    fn says(end_s: f64) -> Option<String> {
        let series = Series {
            quantity: Quantity::RatePerS,
            kind: Kind::Read,
            stage: Stage::Total,
            field: "iops.log".into(),
            interval_s: Some(1.0),
            points: vec![Point { at_s: 1.0, value: 5.0 }, Point { at_s: end_s, value: 5.0 }],
            partial: false,
            understates: false,
        };
        let part = Part {
            window_ns: Some(Figure::exact(60e9, "runtime")),
            series: vec![series],
            ..Part::default()
        };
        let outcome = check(
            &ToolResult { parts: vec![part], ..ToolResult::default() },
            &DeclaredFacts::default(),
        );
        outcome.findings.first().map(|finding| finding.says.clone())
    }

    #[test]
    fn a_log_is_as_long_as_its_run() {
        assert_eq!(says(59.0), None);
        assert_eq!(says(61.0), None);
        assert!(says(31.0).is_some_and(|says| says.contains("48.33 % of the run is missing")));
        assert!(says(90.0).is_some_and(|says| says.contains("continues to 90 s")));
    }
}
