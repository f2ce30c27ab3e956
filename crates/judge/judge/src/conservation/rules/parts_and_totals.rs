//! Checks that each total agrees with its parts.

use plimsoll_evidence::tool_result::{
    Aggregate, Claim, Figure, Formula, Population, ToolResult, Unit,
};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::usable;

pub const RULE: Rule = Rule {
    id: "parts-and-totals",
    asks: "is each total the sum, mean or extreme of its parts?",
    explains: "The rule recomputes each total over ranks, hosts, jobs, phases or repeats from the \
     printed parts. A mean of several parts is between the smallest and the largest figure of the \
     parts. The tolerance is the rounding of all figures, plus the known deviations in the tool's \
     own source code.",
    needs: "a total and its parts",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for combined in &reported.combined {
        // A separate rule checks percentiles.
        if matches!(combined.formula, Formula::Percentile(_)) {
            continue;
        }
        let usable_parts = combined.of.iter().all(usable);
        let Some(made) = made(combined).filter(|_| usable(&combined.total) && usable_parts) else {
            continue;
        };
        let total = Span::from(&combined.total);
        let fits = made.widened(combined.slack).meets(total);
        outcome.check((!fits).then(|| finding(combined, made, total)));
    }
    for population in &reported.populations {
        for claim in population.claims.iter().filter(|claim| usable(&claim.total)) {
            let Some(made) = of_values(&population.values, claim.formula) else { continue };
            // The values are doubles, so their sum depends slightly on the order of addition.
            let made = made.widened(claim.slack.max(DOUBLES));
            let fits = made.meets(Span::from(&claim.total));
            outcome.check((!fits).then(|| of_population(population, claim, made)));
        }
    }
    outcome
}

/// Tolerance for a sum of doubles, which depends slightly on the order of addition.
const DOUBLES: f64 = 1e-9;

fn of_values(values: &[f64], formula: Formula) -> Option<Span> {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let extreme = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
    let exact = Span::exact;
    match formula {
        _ if values.is_empty() => None,
        Formula::Sum => Some(exact(sum)),
        Formula::Mean => Some(exact(sum / count)),
        Formula::GeometricMean => {
            Some(exact((values.iter().map(|v| v.ln()).sum::<f64>() / count).exp()))
        }
        Formula::Max => extreme(f64::max).map(exact),
        Formula::Stddev => {
            let figures: Vec<Figure> =
                values.iter().map(|value| Figure::exact(*value, "")).collect();
            deviation(&figures)
        }
        Formula::Between => {
            let (least, most) = (extreme(f64::min)?, extreme(f64::max)?);
            Some(Span { value: f64::midpoint(least, most), least, most })
        }
        // Tools define percentiles differently. In every definition, the percentile is between the
        // values of the two neighbouring ranks.
        Formula::Percentile(quantile) => {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let last = sorted.len() - 1;
            let rank = quantile * last as f64;
            let (low, high) = (rank.floor() as usize, (rank.ceil() as usize + 1).min(last));
            let (least, most) = (sorted[low.saturating_sub(1)], sorted[high]);
            let value = sorted[low] + (sorted[(low + 1).min(last)] - sorted[low]) * rank.fract();
            Some(Span { value, least, most })
        }
    }
}

fn of_population(population: &Population, claim: &Claim, made: Span) -> Finding {
    let format_value = match population.unit {
        Unit::Ns => format::time as format::ValueFormatter,
        Unit::Bytes => format::bytes,
    };
    let formula = match claim.formula {
        Formula::Percentile(quantile) => format!("{} of", format::quantile(quantile)),
        other => format!("{} of", noun(other)),
    };
    let [made, total] = format::distinct(format_value, [made.value, claim.total.value]);
    let says = format!(
        "{formula} {} of {} {} is {made}, but the result states {total}",
        population.what,
        format::number(population.values.len() as f64),
        population.of,
    );
    Finding::new(Severity::Impossible, says)
        .with_fields([&claim.total.field, &population.field])
        .with_request("the tool's formula for the total, and the values that the total includes")
}

fn noun(formula: Formula) -> &'static str {
    match formula {
        Formula::Sum => "the sum",
        Formula::Mean => "the mean",
        Formula::GeometricMean => "the geometric mean",
        Formula::Max => "the maximum",
        Formula::Stddev => "the standard deviation",
        Formula::Between | Formula::Percentile(_) => "the middle",
    }
}

/// Returns the span of values that the total can have, according to the parts.
fn made(combined: &Aggregate) -> Option<Span> {
    let parts: Vec<Span> = combined.of.iter().map(Span::from).collect();
    let count = parts.len() as f64;
    match combined.formula {
        Formula::Sum => Span::sum(parts),
        Formula::Mean => Span::sum(parts).map(|sum| sum.scaled(1.0 / count)),
        Formula::GeometricMean => {
            if parts.is_empty() {
                return None;
            }
            let of = |value: fn(&Span) -> f64| {
                (parts.iter().map(|part| value(part).max(f64::MIN_POSITIVE).ln()).sum::<f64>()
                    / count)
                    .exp()
            };
            Some(Span { value: of(|s| s.value), least: of(|s| s.least), most: of(|s| s.most) })
        }
        Formula::Max => parts.into_iter().reduce(|a, b| extreme(a, b, f64::max)),
        Formula::Stddev => deviation(&combined.of),
        Formula::Between => {
            let least = parts.iter().map(|s| s.least).reduce(f64::min)?;
            let most = parts.iter().map(|s| s.most).reduce(f64::max)?;
            Some(Span { value: f64::midpoint(least, most), least, most })
        }
        Formula::Percentile(_) => None,
    }
}

fn extreme(a: Span, b: Span, of: fn(f64, f64) -> f64) -> Span {
    Span { value: of(a.value, b.value), least: of(a.least, b.least), most: of(a.most, b.most) }
}

/// Returns a span that contains two standard deviations: that of the population and that of a
/// sample. Tools print one of the two.
fn deviation(parts: &[Figure]) -> Option<Span> {
    let count = parts.len() as f64;
    let mean = parts.iter().map(|part| part.value).sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part.value - mean).powi(2)).sum();
    let rounding = parts.iter().map(|part| part.most - part.least).fold(0.0, f64::max);
    let (population, sample) =
        ((squares / count).sqrt(), (squares / (count - 1.0).max(1.0)).sqrt());
    let least = (population - rounding).max(0.0);
    (count > 0.0).then_some(Span { value: population, least, most: sample + rounding })
}

fn finding(combined: &Aggregate, made: Span, total: Span) -> Finding {
    let formula = match combined.formula {
        Formula::Sum => "sum to",
        Formula::Mean => "have a mean of",
        Formula::GeometricMean => "have a geometric mean of",
        Formula::Max => "have a maximum of",
        Formula::Stddev => "have a standard deviation of",
        Formula::Between | Formula::Percentile(_) => "lie between",
    };
    let [mut value, given] = format::distinct(format::number, [made.value, total.value]);
    if combined.formula == Formula::Between {
        value = format!("{} and {}", format::number(made.least), format::number(made.most));
    }
    let parts = match combined.of.len() {
        1 => "its only part is".to_owned(),
        count => format!("{count} parts {formula}"),
    };
    let mut says = format!("{}: {parts} {value}, but the result states {given}", combined.what);
    if made.value > 0.0 && total.value > 0.0 {
        let ratio = if made.value > total.value {
            made.value / total.value
        } else {
            total.value / made.value
        };
        says.push_str(&format!(" ({})", format::apart(ratio)));
    }
    let parts = combined.of.iter().take(8).map(|figure| figure.field.clone());
    Finding::new(Severity::Impossible, says)
        .with_fields([combined.total.field.clone()].into_iter().chain(parts))
        .with_request("the tool's formula for the total, and the parts that the total includes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(formula: Formula, total: f64, parts: &[f64]) -> usize {
        let of = parts.iter().map(|value| Figure::rounded(*value, 0.1, "part")).collect();
        let total = Figure::rounded(total, 0.1, "total");
        let combined = vec![Aggregate { what: "x".into(), formula, total, of, slack: 0.0 }];
        check(&ToolResult { combined, ..ToolResult::default() }, &DeclaredFacts::default())
            .findings
            .len()
    }

    #[test]
    fn totals_are_made_of_their_parts() {
        for (formula, right, wrong) in [
            (Formula::Sum, 60.1, 61.0),
            (Formula::Mean, 20.0, 20.3),
            (Formula::GeometricMean, 18.2, 20.0),
            (Formula::Max, 30.0, 29.0),
            (Formula::Stddev, 10.0, 7.0),
            (Formula::Between, 12.0, 31.0),
        ] {
            let parts = [10.0, 20.0, 30.0];
            assert_eq!(findings(formula, right, &parts), 0, "{formula:?}");
            assert_eq!(findings(formula, wrong, &parts), 1, "{formula:?}");
        }
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        let population = |formula, total| Population {
            of: "requests".into(),
            what: "latency".into(),
            unit: Unit::Ns,
            field: "list".into(),
            values: values.clone(),
            alike: false,
            claims: vec![Claim { formula, total: Figure::exact(total, "claim"), slack: 0.0 }],
        };
        for (formula, right, wrong) in [
            (Formula::Mean, 50.0, 51.0),
            (Formula::Percentile(0.95), 95.0, 99.0),
            (Formula::Max, 100.0, 99.0),
        ] {
            for (total, findings) in [(right, 0), (wrong, 1)] {
                let reported = ToolResult {
                    populations: vec![population(formula, total)],
                    ..ToolResult::default()
                };
                assert_eq!(
                    check(&reported, &DeclaredFacts::default()).findings.len(),
                    findings,
                    "{formula:?}"
                );
            }
        }
        // The population's deviation is acceptable as well.
        assert_eq!(findings(Formula::Stddev, 8.2, &[10.0, 20.0, 30.0]), 0);
    }
}
