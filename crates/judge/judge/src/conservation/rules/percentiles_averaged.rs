//! Checks whether a percentile of all operations was computed as a mean of percentiles.

use plimsoll_evidence::tool_result::{Aggregate, Formula, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::usable;

/// Minimum spread of the parts' percentiles. If the spread is smaller, a correct and a wrong way of
/// merging yield about the same figure.
const SPREAD_MIN: f64 = 0.02;

pub const RULE: Rule = Rule {
    id: "percentiles-averaged",
    asks: "was a percentile of several parts computed as the mean of the parts' percentiles?",
    explains: "The percentile of all operations is not the mean of the parts' percentiles: for \
     example, one slow rank in ten determines the p99 of all operations, but adds only a tenth of \
     its p99 to the mean. Histograms can be merged, but percentiles cannot: the percentile of all \
     operations is between the smallest and the largest percentile of the parts. If the parts \
     differ by more than 2 % and the total equals their mean, the total was averaged. If the total \
     is outside the range of the parts, it cannot be a percentile of their operations.",
    needs: "a percentile of all operations, and the percentiles of the parts",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for combined in &reported.combined {
        let Formula::Percentile(quantile) = combined.formula else { continue };
        if combined.of.len() < 2 || !usable(&combined.total) || !combined.of.iter().all(usable) {
            continue;
        }
        outcome.check(finding(combined, quantile));
    }
    outcome
}

fn finding(combined: &Aggregate, quantile: f64) -> Option<Finding> {
    let total = Span::from(&combined.total);
    let parts: Vec<Span> = combined.of.iter().map(Span::from).collect();
    let least = parts.iter().map(|part| part.least).fold(f64::INFINITY, f64::min);
    let most = parts.iter().map(|part| part.most).fold(0.0, f64::max);
    let word = format::quantile(quantile);
    let fields = std::iter::once(&combined.total.field)
        .chain(combined.of.iter().take(8).map(|f| &f.field))
        .cloned();
    let between = Span { value: f64::midpoint(least, most), least, most }.widened(combined.slack);
    let parts_say = format!(
        "{word} of {} parts are between {} and {}",
        parts.len(),
        format::time(least),
        format::time(most)
    );
    let given = format::time(total.value);
    if !between.meets(total) {
        let says = format!(
            "{}: {parts_say}, but the result states {word} of all operations as \
            {given}",
            combined.what
        );
        return Some(
            Finding::new(Severity::Impossible, says)
                .with_fields(fields)
                .with_request("the merged histogram"),
        );
    }
    let mean = Span::sum(parts.iter().copied())?.scaled(1.0 / parts.len() as f64);
    let spread = (most - least) / mean.value.max(f64::MIN_POSITIVE);
    // A figure may be near the mean by chance, so the tolerance is only the rounding of the printed
    // figures.
    let is_mean = mean.meets(total) && total.coarseness() < spread / 4.0;
    if spread < SPREAD_MIN || !is_mean {
        return None;
    }
    let says = format!(
        "{}: the stated {word} of all operations, {given}, is the mean of the parts \
         ({parts_say}); the real {word} of all operations may be anywhere in this range",
        combined.what
    );
    Some(
        Finding::new(Severity::Doubtful, says)
            .with_fields(fields)
            .with_request("the merged histogram"),
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Figure;

    use super::*;

    fn severity(total: f64, parts: &[f64]) -> Option<Severity> {
        let of = parts.iter().map(|value| Figure::rounded(*value, 0.01, "part")).collect();
        let total = Figure::rounded(total, 0.01, "total");
        let combined = vec![Aggregate {
            what: "read".into(),
            formula: Formula::Percentile(0.99),
            total,
            of,
            slack: 0.0,
        }];
        let outcome =
            check(&ToolResult { combined, ..ToolResult::default() }, &DeclaredFacts::default());
        outcome.findings.first().map(|finding| finding.severity)
    }

    #[test]
    fn the_mean_of_percentiles_is_recognised() {
        assert_eq!(severity(20.0, &[10.0, 20.0, 30.0]), Some(Severity::Doubtful));
        assert_eq!(severity(28.4, &[10.0, 20.0, 30.0]), None);
        assert_eq!(severity(30.0, &[10.0, 20.0, 30.0]), None);
        assert_eq!(severity(40.0, &[10.0, 20.0, 30.0]), Some(Severity::Impossible));
        assert_eq!(severity(20.0, &[20.0, 20.1, 19.9]), None);
    }
}
