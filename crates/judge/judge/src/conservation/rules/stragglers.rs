//! Checks that all parts worked at the same time and at the same speed.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Kind, Operation, Part, Population, ToolResult, Unit};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{rate, usable, window};

/// If there are at least this number of parts of the same kind, their median counts as the usual
/// value.
const PARTS_MIN: usize = 4;
/// Maximum time of the slowest part, as a multiple of the median time. On healthy shared file
/// systems, ranks differ by up to a third (IO500 submissions).
const TIME_MAX: f64 = 1.5;
/// Minimum rate of the slowest part, as a fraction of the median rate.
const RATE_MIN: f64 = 0.5;
/// All parts must have run at the same time for at least this share of the total time.
const OVERLAP_MIN: f64 = 0.8;

pub const RULE: Rule = Rule {
    id: "stragglers",
    asks: "did all ranks, hosts and jobs run at the same time and at about the same speed?",
    explains: "The rule compares parts of a result that do the same work with their median. A part \
               is a straggler if it took more than 1.5 times the median time, or had less than half \
               the median rate. The rates of parts that ran at different times must not be summed: \
               the system never reached this sum at any time.",
    needs: "the times or rates of four or more parts that do the same work",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let mut alike: BTreeMap<String, Vec<(&Part, &Operation)>> = BTreeMap::new();
    for (part, operation) in reported.operations().filter(|(part, _)| !part.is_total) {
        // Only parts of one phase with the same settings can be compared.
        let requested = format!(
            "{:?}|{}|{:?}|{:?}|{:?}",
            part.group,
            operation.kind.word(),
            operation.size_bytes.as_ref().map(|size| size.value),
            part.setting.pattern,
            part.setting.outstanding.as_ref().map(|o| o.most.value),
        );
        let group = if part.rank.is_some() || part.host.is_some() {
            requested
        } else {
            part.name.clone() + &requested
        };
        alike.entry(group).or_default().push((part, operation));
    }
    for parts in alike.into_values().filter(|parts| parts.len() >= PARTS_MIN) {
        times(&mut outcome, &parts);
        rates(&mut outcome, &parts);
        together(&mut outcome, &parts);
    }
    for population in reported.populations.iter().filter(|p| p.alike && p.values.len() >= PARTS_MIN)
    {
        outcome.check(of_many(population));
    }
    outcome
}

/// Returns a finding if at least one of many parts is much slower than the median.
fn of_many(population: &Population) -> Option<Finding> {
    let usual = median(&population.values);
    let by_time = population.unit == Unit::Ns;
    let slow =
        |value: &f64| if by_time { *value > usual * TIME_MAX } else { *value < usual * RATE_MIN };
    let count = population.values.iter().filter(|value| slow(value)).count();
    let worse = |a: &f64, b: &f64| if by_time { a.total_cmp(b) } else { b.total_cmp(a) };
    let (index, worst) = population.values.iter().enumerate().max_by(|a, b| worse(a.1, b.1))?;
    if count == 0 || usual <= 0.0 {
        return None;
    }
    let format_value = match population.unit {
        Unit::Ns => format::time as format::ValueFormatter,
        Unit::Bytes => format::bytes,
    };
    let says = format!(
        "{count} of {} {} are stragglers: {} is {} for the slowest (number {index}), but the median \
         is {} ({})",
        format::number(population.values.len() as f64),
        population.of,
        population.what,
        format_value(*worst),
        format_value(usual),
        format::times(if by_time { worst / usual } else { usual / worst.max(f64::MIN_POSITIVE) })
    );
    Some(Finding::new(Severity::Doubtful, says).with_fields([&population.field]).with_request(
        "the reason why the stragglers took longer, and the total rate while all ranks, hosts or \
         jobs ran",
    ))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn name(part: &Part) -> String {
    let words = [part.rank.as_deref(), part.host.as_deref(), Some(part.name.as_str())];
    words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn times(outcome: &mut RuleResult, parts: &[(&Part, &Operation)]) {
    let of = |(part, operation): &(&Part, &Operation)| window(part, operation).map(|w| w.value);
    let values: Vec<f64> = parts.iter().filter_map(of).collect();
    if values.len() < parts.len() {
        return;
    }
    let usual = median(&values);
    let slow = parts.iter().zip(&values).filter(|(_, value)| **value > usual * TIME_MAX);
    let (slowest, count) = (slow.clone().max_by(|a, b| a.1.total_cmp(b.1)), slow.count());
    outcome.check(slowest.map(|((part, operation), value)| {
        let says = format!(
            "{count} of {} parts took more than {TIME_MAX} times the median time: {} of {} took {}, \
             but the median is {} ({})",
            parts.len(),
            operation.kind.word(),
            name(part),
            format::time(*value),
            format::time(usual),
            format::times(value / usual)
        );
        let field = window(part, operation).map(|w| w.field.clone());
        Finding::new(Severity::Doubtful, says)
            .with_fields(field)
            .with_request("the reason why some parts of the workload were slow, and the total rate \
                           while all parts ran")
    }));
}

fn rates(outcome: &mut RuleResult, parts: &[(&Part, &Operation)]) {
    let of = |(part, operation): &(&Part, &Operation)| {
        let bandwidth = super::bandwidth(part, operation).filter(|_| operation.kind != Kind::All);
        bandwidth.or_else(|| rate(part, operation)).map(|(span, fields)| (span.value, fields))
    };
    let values: Vec<(f64, Vec<String>)> = parts.iter().filter_map(of).collect();
    if values.len() < parts.len() {
        return;
    }
    let usual = median(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>());
    let slow = parts.iter().zip(&values).filter(|(_, (value, _))| *value < usual * RATE_MIN);
    let (slowest, count) = (slow.clone().min_by(|a, b| a.1.0.total_cmp(&b.1.0)), slow.count());
    outcome.check(slowest.map(|((part, operation), (value, fields))| {
        let says = format!(
            "{count} of {} parts had less than half the median rate: the rate of {} of {} was {} of \
             the median",
            parts.len(),
            operation.kind.word(),
            name(part),
            format::percent(value / usual)
        );
        Finding::new(Severity::Doubtful, says)
            .with_fields(fields.clone())
            .with_request("the reason why some parts of the workload were slow, and the total rate \
                           while all parts ran")
    }));
}

/// Checks that parts whose rates are summed ran at the same time.
fn together(outcome: &mut RuleResult, parts: &[(&Part, &Operation)]) {
    let of = |(part, operation): &(&Part, &Operation)| {
        let window = window(part, operation).filter(|w| usable(w))?;
        let start = part.start_unix_s?;
        Some((start, start + window.value / 1e9))
    };
    let spans: Vec<(f64, f64)> = parts.iter().filter_map(of).collect();
    if spans.len() < parts.len() {
        return;
    }
    let extreme =
        |values: &mut dyn Iterator<Item = f64>, of: fn(f64, f64) -> f64| values.reduce(of);
    let (Some(first), Some(last_start), Some(first_end), Some(last)) = (
        extreme(&mut spans.iter().map(|s| s.0), f64::min),
        extreme(&mut spans.iter().map(|s| s.0), f64::max),
        extreme(&mut spans.iter().map(|s| s.1), f64::min),
        extreme(&mut spans.iter().map(|s| s.1), f64::max),
    ) else {
        return;
    };
    let share = ((first_end - last_start) / (last - first)).max(0.0);
    outcome.check((last > first && share < OVERLAP_MIN).then(|| {
        let says = format!(
            "{} parts ran during a total of {}, but all of them ran at the same time for only {} of \
             this time: their rates must not be summed",
            parts.len(),
            format::time((last - first) * 1e9),
            format::percent(share)
        );
        Finding::new(Severity::Doubtful, says)
            .with_fields(["start times"])
            .with_request("the rate during the time in which all parts ran")
    }));
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::Figure;

    use super::*;

    fn ranks(times: &[(f64, f64, f64)]) -> Vec<Finding> {
        let part = |(index, (start, seconds, rate)): (usize, &(f64, f64, f64))| {
            let mut operation = Operation::of(Kind::Write);
            operation.window_ns = Some(Figure::exact(seconds * 1e9, format!("time[{index}]")));
            operation.bandwidth_per_s = vec![Figure::exact(*rate, format!("rate[{index}]"))];
            Part {
                rank: Some(format!("rank {index}")),
                start_unix_s: Some(*start),
                operations: vec![operation],
                ..Part::default()
            }
        };
        let parts = times.iter().enumerate().map(part).collect();
        check(&ToolResult { parts, ..ToolResult::default() }, &DeclaredFacts::default()).findings
    }

    #[test]
    fn a_straggler_is_named_with_its_time() {
        let even = (0.0, 10.0, 5.0);
        assert!(ranks(&[even; 5]).is_empty());
        let found = ranks(&[even, even, even, even, (0.0, 16.0, 5.0)]);
        assert!(found[0].says.contains("rank 4 took 16 s"), "{found:?}");
        assert_eq!(found[0].fields, ["time[4]"]);
        let found = ranks(&[even, even, even, even, (0.0, 10.0, 2.0)]);
        assert!(found[0].says.contains("of rank 4 was 40 %"), "{found:?}");
        assert!(ranks(&[even, (0.0, 100.0, 1.0)]).is_empty(), "two parts have no usual one");
    }

    #[test]
    fn hosts_are_compared_within_a_phase() {
        let found = |groups: [&str; 4]| {
            let part = |(index, group): (usize, &str)| {
                let mut operation = Operation::of(Kind::Write);
                operation.window_ns = Some(Figure::exact(10e9, "time"));
                Part {
                    host: Some(format!("host {index}")),
                    group: Some(group.to_owned()),
                    start_unix_s: Some(10.0 * (index / 2) as f64),
                    operations: vec![operation],
                    ..Part::default()
                }
            };
            let parts = groups.into_iter().enumerate().map(part).collect();
            let reported = ToolResult { parts, ..ToolResult::default() };
            check(&reported, &DeclaredFacts::default()).findings.len()
        };
        assert_eq!((found(["0"; 4]), found(["0", "0", "1", "1"])), (1, 0));
    }

    #[test]
    fn rates_of_different_times_do_not_add_up() {
        let found =
            ranks(&[(0.0, 10.0, 5.0), (0.0, 10.0, 5.0), (5.0, 10.0, 5.0), (5.0, 10.0, 5.0)]);
        assert!(found[0].says.contains("33.33 %"), "{found:?}");
    }
}
