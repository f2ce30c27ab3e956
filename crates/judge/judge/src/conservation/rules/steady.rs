//! Checks whether the run was steady.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Quantity, Series, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};

/// Number of rounds in the steady-state window (SNIA SSS PTS 2.0.2, 2.1.24).
const ROUNDS: usize = 5;
/// Each round needs at least this number of intervals for its mean.
const INTERVALS_MIN: usize = 4;
/// Maximum excursion: the difference between the highest and lowest round, divided by their mean
/// (SNIA SSS PTS 2.0.2, 2.1.24).
const EXCURSION_MAX: f64 = 0.20;
/// Maximum change of the least-squares line over the window, as a fraction of the mean (same
/// source).
const SLOPE_MAX: f64 = 0.10;

pub const RULE: Rule = Rule {
    id: "not-steady",
    asks: "was the rate steady through the run?",
    explains: "The rule divides the run into five rounds. The means of the rounds may differ by at \
               most 20 % of the mean of the run, and the line fitted to them may rise or fall by at \
               most 10 % of the mean (SNIA SSS PTS 2.0.2, 2.1.24). If they exceed these limits, the \
               run was still filling or emptying a cache, or was disturbed, so its mean depends on \
               its length. SNIA's rounds take an hour. If rounds of a minute pass, the rate was \
               steady during the run, but it may still change after this time.",
    needs: "the rate in twenty or more intervals",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    // Jobs with the same name ran at the same time. The load of the run is the sum of these jobs; a
    // single job may stall.
    let mut together: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
    for part in &reported.parts {
        together.entry(&part.name).or_default().extend(&part.series);
    }
    for (name, series) in together {
        for quantity in [Quantity::BandwidthPerS, Quantity::RatePerS] {
            let logs: Vec<&Series> = series
                .iter()
                .copied()
                .filter(|s| {
                    let whole = s.interval_s.is_some() && !s.partial;
                    s.quantity == quantity && whole && s.points.len() >= ROUNDS
                })
                .collect();
            if let Some((rounds, field)) = rounds(&logs) {
                outcome.check(finding(name, &rounds, quantity, &field));
                break;
            }
        }
    }
    outcome
}

/// Returns the mean of the series in each fifth of its time.
fn rounds(logs: &[&Series]) -> Option<([f64; ROUNDS], String)> {
    let end = logs.iter().flat_map(|log| &log.points).map(|p| p.at_s).fold(0.0, f64::max);
    let longest = logs.iter().map(|log| log.points.len()).max()?;
    if longest < ROUNDS * INTERVALS_MIN || end <= 0.0 {
        return None;
    }
    let interval = logs.iter().filter_map(|log| log.interval_s).fold(0.0, f64::max);
    let mut sums = [0.0; ROUNDS];
    let mut counts = [0.0f64; ROUNDS];
    for log in logs {
        for point in &log.points {
            // A point describes the interval that ends at its time.
            let middle = (point.at_s - interval / 2.0).max(0.0);
            let round = ((middle / end * ROUNDS as f64) as usize).min(ROUNDS - 1);
            sums[round] += point.value;
            counts[round] += 1.0 / logs.len() as f64;
        }
    }
    if counts.iter().any(|count| *count < 1.0) {
        return None;
    }
    let mut means = [0.0; ROUNDS];
    for (mean, (sum, count)) in means.iter_mut().zip(sums.iter().zip(counts)) {
        *mean = sum / count;
    }
    Some((means, logs.first().map(|log| log.field.clone()).unwrap_or_default()))
}

fn finding(name: &str, rounds: &[f64; ROUNDS], quantity: Quantity, field: &str) -> Option<Finding> {
    let count = ROUNDS as f64;
    let mean = rounds.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return None;
    }
    let (least, most) =
        rounds.iter().fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let excursion = (most - least) / mean;
    let middle = (count - 1.0) / 2.0;
    let slope = rounds.iter().enumerate().map(|(i, r)| (i as f64 - middle) * r).sum::<f64>()
        / (0..ROUNDS).map(|i| (i as f64 - middle).powi(2)).sum::<f64>();
    let rise = slope * (count - 1.0) / mean;
    if excursion <= EXCURSION_MAX && rise.abs() <= SLOPE_MAX {
        return None;
    }
    let format_value = match quantity {
        Quantity::BandwidthPerS => format::bytes_per_s,
        _ => super::per_s as fn(f64) -> String,
    };
    let shown: Vec<String> = rounds.iter().map(|round| format_value(*round)).collect();
    let whose = if name.is_empty() { String::new() } else { format!(" of {name}") };
    let says = format!(
        "the {}{whose} in five rounds is {}: the rounds differ by {} of their mean (steady: at most \
         20 %) and {} by {} over the run (steady: at most 10 %)",
        quantity.word(),
        shown.join(", "),
        format::percent(excursion),
        if rise < 0.0 { "fall" } else { "rise" },
        format::percent(rise.abs())
    );
    Some(Finding::new(Severity::Doubtful, says).with_fields([field]).with_request(
        "a run that continues until five rounds agree, and the amount of data that was written \
         before this run",
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Part, Point, Stage};

    use super::*;

    fn says(value: fn(usize) -> f64) -> Option<String> {
        let point = |i: usize| Point { at_s: i as f64 + 1.0, value: value(i) };
        let series = Series {
            quantity: Quantity::RatePerS,
            kind: Kind::Write,
            stage: Stage::Total,
            field: "iops.log".into(),
            interval_s: Some(1.0),
            points: (0..60).map(point).collect(),
            partial: false,
            understates: false,
        };
        let part = Part { series: vec![series], ..Part::default() };
        let outcome = check(
            &ToolResult { parts: vec![part], ..ToolResult::default() },
            &DeclaredFacts::default(),
        );
        assert_eq!(outcome.checked, 1);
        outcome.findings.first().map(|finding| finding.says.clone())
    }

    #[test]
    fn a_window_of_the_run_is_not_summed_with_the_log_of_all_of_it() {
        let series = |values: &[f64], partial| Series {
            quantity: Quantity::BandwidthPerS,
            kind: Kind::All,
            stage: Stage::Total,
            field: "log".into(),
            interval_s: Some(1.0),
            points: (1..)
                .zip(values)
                .map(|(i, v)| Point { at_s: f64::from(i), value: *v })
                .collect(),
            partial,
            understates: false,
        };
        let part = Part {
            series: vec![series(&[5000.0; 10], true), series(&[1000.0; 60], false)],
            ..Part::default()
        };
        let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
        let outcome = check(&reported, &DeclaredFacts::default());
        assert_eq!((outcome.checked, outcome.findings.len()), (1, 0));
    }

    #[test]
    fn jobs_of_one_name_are_steady_where_their_sum_is() {
        let job = |name: &str, value: fn(f64) -> f64| {
            let at = |i: u32| Point { at_s: f64::from(i), value: value(f64::from(i)) };
            let series = Series {
                quantity: Quantity::BandwidthPerS,
                kind: Kind::All,
                stage: Stage::Total,
                field: "log".into(),
                interval_s: Some(1.0),
                points: (1..=60).map(at).collect(),
                partial: false,
                understates: false,
            };
            Part { name: name.into(), series: vec![series], ..Part::default() }
        };
        let findings = |other: &str| {
            let rises = job("a", |at| 1000.0 + at * 10.0);
            let parts = vec![rises, job(other, |at| 1600.0 - at * 10.0)];
            check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default())
                .findings
                .len()
        };
        assert_eq!((findings("a"), findings("b")), (0, 2));
    }

    #[test]
    fn five_rounds_are_alike_or_they_are_not() {
        assert_eq!(says(|i| 1000.0 + (i % 5) as f64 * 50.0), None);
        let cliff = says(|i| if i < 20 { 3000.0 } else { 1000.0 });
        assert!(cliff.is_some_and(|says| says.contains("fall by")));
        assert!(says(|i| 1000.0 + i as f64 * 5.0).is_some_and(|says| says.contains("rise by")));
    }
}
