//! The rules, each in a separate file.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part};

use super::{Rule, Span, format};

pub mod beyond_any_link;
pub mod contradiction;
pub mod counter_reset;
pub mod device_floor;
pub mod device_moved;
pub mod fits_memory;
pub mod interval_within_total;
mod latency_shares;
pub mod latency_within_run;
pub mod later_passes_faster;
pub mod littles_law;
pub mod lost_parts;
pub mod mean_within_extremes;
pub mod nothing_done;
pub mod parts_and_totals;
pub mod percentiles_averaged;
pub mod percentiles_in_order;
pub mod queue_grows;
pub mod rate_limit;
pub mod rate_size_bandwidth;
pub mod says_invalid;
pub mod series_agrees;
pub mod series_covers_run;
pub mod stalls;
pub mod steady;
pub mod stragglers;

/// All rules that check a single result. Findings of equal severity are reported in this order.
pub const ALL: &[Rule] = &[
    says_invalid::RULE,
    nothing_done::RULE,
    rate_size_bandwidth::RULE,
    littles_law::RULE,
    latency_within_run::RULE,
    mean_within_extremes::RULE,
    percentiles_in_order::RULE,
    contradiction::RULE,
    parts_and_totals::RULE,
    percentiles_averaged::RULE,
    lost_parts::RULE,
    stragglers::RULE,
    later_passes_faster::RULE,
    fits_memory::RULE,
    interval_within_total::RULE,
    series_agrees::RULE,
    series_covers_run::RULE,
    queue_grows::RULE,
    steady::RULE,
    stalls::RULE,
    beyond_any_link::RULE,
    device_floor::RULE,
    device_moved::RULE,
    rate_limit::RULE,
];

/// Returns the run time that was used to compute an operation's rates.
pub(super) fn window<'r>(part: &'r Part, operation: &'r Operation) -> Option<&'r Figure> {
    operation.window_ns.as_ref().or(part.window_ns.as_ref()).filter(|w| usable(w) && w.value > 0.0)
}

/// Returns true if a figure can be used in a calculation and is not negative.
pub(super) fn usable(figure: &Figure) -> bool {
    figure.is_usable() && figure.most >= 0.0
}

/// Returns the first usable figure of a list.
fn first(figures: &[Figure]) -> Option<&Figure> {
    figures.iter().find(|figure| usable(figure))
}

/// Returns operations per second: the stated rate, or the count divided by the time.
pub(super) fn rate(part: &Part, operation: &Operation) -> Option<(Span, Vec<String>)> {
    if let Some(rate) = first(&operation.rate_per_s) {
        return Some((rate.into(), vec![rate.field.clone()]));
    }
    let (count, window) = (first(&operation.count)?, window(part, operation)?);
    let rate = Span::from(count).over(Span::from(window).scaled(1e-9))?;
    Some((rate, vec![count.field.clone(), window.field.clone()]))
}

/// Returns bytes per second: the stated bandwidth, or the bytes divided by the time.
pub(super) fn bandwidth(part: &Part, operation: &Operation) -> Option<(Span, Vec<String>)> {
    if let Some(bandwidth) = first(&operation.bandwidth_per_s) {
        return Some((bandwidth.into(), vec![bandwidth.field.clone()]));
    }
    let (bytes, window) = (first(&operation.bytes)?, window(part, operation)?);
    let rate = Span::from(bytes).over(Span::from(window).scaled(1e-9))?;
    Some((rate, vec![bytes.field.clone(), window.field.clone()]))
}

/// Returns bytes per second: the stated bandwidth, the bytes divided by the time, or the rate
/// multiplied by the stated size.
fn moved(part: &Part, operation: &Operation) -> Option<(Span, Vec<String>)> {
    bandwidth(part, operation).or_else(|| {
        let size = operation.size_bytes.as_ref().filter(|size| usable(size))?;
        let (rate, mut fields) = rate(part, operation)?;
        fields.push(size.field.clone());
        Some((rate.times(size.into()), fields))
    })
}

/// Divides parts into groups that ran at the same time. Jobs in the same group of the tool ran
/// together, and so did the ranks and hosts of a result without groups. Every other part is alone,
/// because it may be a phase or an iteration.
pub(super) fn concurrent<'r>(parts: impl IntoIterator<Item = &'r Part>) -> Vec<Vec<&'r Part>> {
    let (mut groups, mut known) = (Vec::<Vec<&Part>>::new(), BTreeMap::new());
    for part in parts {
        let shared = (part.rank.is_some() || part.host.is_some()).then_some("");
        let at = match part.group.as_deref().or(shared) {
            Some(name) => *known.entry(name).or_insert(groups.len()),
            None => groups.len(),
        };
        match groups.get_mut(at) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    groups
}

/// Returns all operations of a kind, each with its part.
fn of_kind<'r>(parts: &[&'r Part], kind: &Kind) -> Vec<(&'r Part, &'r Operation)> {
    let alike = |part: &&'r Part| {
        let (part, of) = (*part, part.operations.iter().filter(|o| o.kind == *kind));
        of.map(move |operation| (part, operation)).collect::<Vec<_>>()
    };
    parts.iter().flat_map(alike).collect()
}

/// Adds the rates of concurrent operations, and returns the sum with the fields of the first four.
/// An operation that ended early counts only for its share of the longest run time, because the
/// others became faster after its end.
fn sum_of_rates(
    operations: &[(&Part, &Operation)],
    rate_of: fn(&Part, &Operation) -> Option<(Span, Vec<String>)>,
) -> Option<(Span, Vec<String>)> {
    let length = |both: &(&Part, &Operation)| window(both.0, both.1).map(|window| window.value);
    let longest = operations.iter().filter_map(length).reduce(f64::max);
    let rate_in_run = |both: &(&Part, &Operation)| {
        let (span, fields) = rate_of(both.0, both.1)?;
        let share = length(both).zip(longest).map_or(1.0, |(own, longest)| own / longest);
        Some((span.scaled(share), fields))
    };
    let rates: Vec<_> = operations.iter().filter_map(rate_in_run).collect();
    let sum = Span::sum(rates.iter().map(|(span, _)| *span))?;
    Some((sum, rates.into_iter().take(4).flat_map(|(_, fields)| fields).collect()))
}

/// Returns the size of an operation: the stated size, or the bytes divided by the number of
/// operations.
fn size(operation: &Operation) -> Option<Span> {
    if let Some(size) = operation.size_bytes.as_ref().filter(|size| usable(size)) {
        return Some(size.into());
    }
    let (bytes, count) = (first(&operation.bytes)?, first(&operation.count)?);
    Span::from(bytes).over(count.into())
}

/// Returns a prefix such as `reads of job a: `; empty if the result has one part.
fn whose(part: &Part, operation: &Operation) -> String {
    let mut whose = operation.kind.word().to_owned();
    let of = [&part.name, part.host.as_deref().unwrap_or(""), part.rank.as_deref().unwrap_or("")];
    let of: Vec<&str> = of.into_iter().filter(|word| !word.is_empty()).collect();
    if !of.is_empty() {
        whose.push_str(&format!(" of {}", of.join(" ")));
    }
    whose.push_str(": ");
    whose
}

/// Formats a rate, such as `99,507 /s`.
fn per_s(rate: f64) -> String {
    format!("{}/s", format::number(rate))
}
