//! Searches for the load line and the fewest threads, step by step.

use plimsoll_judge::tuning::{TunedLoad, Tuning};
use plimsoll_report::chart::Plot;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone};
use plimsoll_report::tuning::curve;

use crate::analysis::{Analysis, SearchAnalysis};

/// Sections on searches: results, curves, and steps from the smallest load.
pub(super) fn searches(analysis: &Analysis) -> Vec<Section> {
    let found: Vec<(&SearchAnalysis, &Tuning)> = analysis
        .searches
        .iter()
        .filter_map(|search| Some((search, search.found.as_ref()?)))
        .collect();
    if found.is_empty() {
        return Vec::new();
    }
    let mut section = Section::brief("searches", "Searches").with(Block::Table(summary(&found)));
    let mut each = Section::full("steps", "Step by step");
    for (search, tuning) in found {
        section = section.with(Block::Chart(Box::new(plot(search, tuning))));
        each = each.with(Block::Table(steps(search, tuning)));
    }
    vec![section, each]
}

/// Latency over rate, of one server.
fn plot(search: &SearchAnalysis, tuning: &Tuning) -> Plot {
    let mut curve = curve(tuning);
    let parts = f64::from(search.servers.max(1));
    for step in &mut curve.steps {
        step.rate_per_s /= parts;
        step.rate_interval = step.rate_interval.map(|(low, high)| (low / parts, high / parts));
    }
    // Mean latencies show the load at which the curve bends; interval maxima would hide it.
    let means = |name: &String| !name.ends_with("max");
    let kept: Vec<bool> = curve.latency_names.iter().map(means).collect();
    keep(&mut curve.latency_names, &kept);
    keep(&mut curve.ceilings_ns, &kept);
    curve.steps.iter_mut().for_each(|step| keep(&mut step.latency_ns, &kept));
    curve.load_name = search.counted_in().to_owned();
    let mut plot = curve.plot();
    let slug = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    plot.id = format!("curve-{}", search.name.chars().map(slug).collect::<String>());
    let each = if search.servers > 1 { ", one server" } else { "" };
    plot.title = format!("Search {}: rate and latency{each}", search.name);
    plot
}

fn keep<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    values.retain(|_| flags.next().copied().unwrap_or(true));
}

fn summary(found: &[(&SearchAnalysis, &Tuning)]) -> Table {
    let load = found.first().map_or("threads", |(search, _)| search.counted_in());
    let mut table = Table::new(
        "",
        vec![
            Column::words("search", "search"),
            Column::numbers("required", "required"),
            Column::numbers(load, "fewest").under("fewest that meet it"),
            Column::numbers("I/Os", "fewest_rate").under("fewest that meet it"),
            Column::numbers(load, "load_line").under("load line"),
            Column::numbers("I/Os", "load_line_rate").under("load line"),
            Column::remarks("description", "title"),
        ],
    );
    for (search, tuning) in found {
        let parts = f64::from(search.servers.max(1));
        let of = |at: Option<TunedLoad>| match at {
            Some(at) => [Cell::count(at.load), Cell::number(Unit::Rate, at.rate_per_s / parts)],
            None => [Cell::not_applicable(), Cell::not_applicable()],
        };
        let mut row = vec![
            Cell::text(search.name.clone()).tone(Tone::Strong),
            Cell::maybe(Unit::Rate, tuning.required_per_s.map(|rate| rate / parts)),
        ];
        row.extend(of(tuning.required_load));
        row.extend(of(tuning.load_line));
        row.push(Cell::text(search.title.clone()));
        table.rows.push(row);
    }
    if found.iter().any(|(search, _)| search.servers > 1) {
        table.note = format!("{load} are those of all servers together, I/Os those of one");
    }
    table
}

fn steps(search: &SearchAnalysis, tuning: &Tuning) -> Table {
    let parts = f64::from(search.servers.max(1));
    let mut columns = vec![
        Column::numbers(search.counted_in(), "load"),
        Column::of(Unit::Rate, "I/Os", "rate_per_s"),
    ];
    for latency in &tuning.latencies {
        let name = latency.name.replace('_', " ");
        columns.push(Column::numbers(&name, &format!("{}_ns", latency.name)));
    }
    columns.push(Column::words("within the limits", "within"));
    columns.push(Column::words("steady", "steady"));
    let mut table = Table::new(&format!("Steps of search {}", search.name), columns);
    let mut steps: Vec<_> = tuning.steps.iter().collect();
    steps.sort_by_key(|step| step.load);
    let word = |known: Option<bool>| match known {
        Some(true) => Cell::text("yes").tone(Tone::Good),
        Some(false) => Cell::text("no").tone(Tone::Warn),
        None => Cell::unknown(),
    };
    for step in steps {
        let mut row = vec![
            Cell::count(step.load),
            Cell::maybe(Unit::Rate, step.rate_per_s.map(|rate| rate / parts)),
        ];
        row.extend(step.latencies_ns.iter().map(|ns| Cell::maybe(Unit::Latency, *ns)));
        row.extend([word(step.within), word(step.steady)]);
        table.rows.push(row);
    }
    table
}
