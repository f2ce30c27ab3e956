//! Shows the searches for the load line and the smallest number of threads, step by step.

use plimsoll_judge::stats::tune::MeasuredLoad;
use plimsoll_judge::tuning::Tuning;
use plimsoll_report::Curve;
use plimsoll_report::chart::Plot;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone};

use crate::analysis::{Analysis, SearchAnalysis};

/// Returns the sections on load searches: results, curves, and steps in the order of increasing
/// load.
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

/// Plots latency over rate, for one server.
fn plot(search: &SearchAnalysis, tuning: &Tuning) -> Plot {
    let parts = f64::from(search.servers.max(1));
    let mut one_server = tuning.clone();
    for step in &mut one_server.steps {
        step.rate_per_s = step.rate_per_s.map(|rate| rate / parts);
        step.rate_interval_per_s = step.rate_interval_per_s.map(|ends| ends.map(|end| end / parts));
    }
    for line in one_server.load_line.iter_mut().chain(&mut one_server.required_load) {
        line.rate_per_s /= parts;
    }
    // Mean latencies show the load at which the curve bends. Maxima of intervals would hide this
    // load, so they are removed.
    let kept: Vec<bool> = tuning.latencies.iter().map(|l| !l.name.ends_with("max")).collect();
    keep(&mut one_server.latencies, &kept);
    one_server.steps.iter_mut().for_each(|step| keep(&mut step.latencies_ns, &kept));
    let mut curve = Curve::of(&one_server);
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
            Column::numbers(load, "fewest").under("smallest load that meets it"),
            Column::numbers("I/Os", "fewest_rate").under("smallest load that meets it"),
            Column::numbers(load, "load_line").under("load line"),
            Column::numbers("I/Os", "load_line_rate").under("load line"),
            Column::remarks("description", "title"),
        ],
    );
    for (search, tuning) in found {
        let parts = f64::from(search.servers.max(1));
        let of = |at: Option<MeasuredLoad>| match at {
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
        table.note = format!("{load}: sum over all servers; I/Os: rate of one server");
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

#[cfg(test)]
mod tests {
    use plimsoll_judge::tuning::{Latency, Range, TuneStep};
    use plimsoll_plan::Knob;
    use plimsoll_report::chart::Mark;

    use super::*;

    #[test]
    fn a_curve_shows_one_server_and_no_maxima() {
        let latency = |name: &str| Latency { name: name.to_owned(), ceiling_ns: Some(2e7) };
        let step = TuneStep {
            load: 8,
            rate_per_s: Some(400.0),
            latencies_ns: vec![Some(1e8), Some(5e6)],
            steady: Some(true),
            ..TuneStep::default()
        };
        let line = MeasuredLoad { load: 8, rate_per_s: 400.0, measurements: 1 };
        let tuning = Tuning {
            name: "s".to_owned(),
            knob: Knob::Threads,
            range: Range::up_to(8),
            neighbour: None,
            latencies: vec![latency("db_read_latency_max"), latency("db_read_latency_avg")],
            stalls_max_per_s: None,
            required_per_s: None,
            has_requirement: false,
            steps: vec![step],
            complete: true,
            load_line: Some(line),
            confirmed: true,
            knee: None,
            required_load: None,
            required_load_checked: false,
            remarks: Vec::new(),
        };
        let search = SearchAnalysis {
            name: "s".to_owned(),
            title: String::new(),
            servers: 4,
            load_name: Some("sessions".to_owned()),
            found: None,
        };
        let plot = plot(&search, &tuning);
        let lines = plot.marks.iter().filter_map(|mark| match mark {
            Mark::Dots { name, dots, joined: true, .. } => Some((name.as_str(), dots)),
            _ => None,
        });
        let lines: Vec<(&str, f64, f64)> = lines
            .flat_map(|(name, dots)| dots.iter().map(move |dot| (name, dot.x, dot.y)))
            .collect();
        assert_eq!(lines, [("database read latency, average", 100.0, 5e6)]);
        assert!(plot.says.contains("sessions"), "{}", plot.says);
        assert!(plot.rules.iter().any(|rule| rule.label.starts_with("load line 100")));
    }
}
