//! Report of a comparison of two sweeps. It shows the conclusion, heat maps of ratios for each
//! pattern and queue depth, all cells, and the conditions that differ.

use plimsoll_judge::compare::{
    CellFigure, CellOutcome, Outcome, Overall, SweepCell, SweepComparison,
};

use crate::chart::plot::{Dot, RuleKind};
use crate::chart::{Axis, AxisScale, Mark, Plot, Rule};
use crate::comparison::headline_text;
use crate::document::{Block, Document, Headline, Section};
use crate::number::Unit;
use crate::study::{ShapeGroup, reads, size};
use crate::table::{Cell, Column, Table, Tone, Value};

/// Returns the report of a comparison of two sweeps.
pub fn sweeps_document(compared: &SweepComparison) -> Document {
    let [first, second] = &compared.names;
    let groups = ShapeGroup::all(&compared.cells);
    let mut maps =
        Section::full("maps", &format!("Operations per second: {second} relative to {first}"));
    let mut grids =
        Section::terminal("grids", &format!("Ratio of rates: {second} relative to {first}"));
    let mut latency =
        Section::full("latency", &format!("Average latency: {second} relative to {first}"));
    for group in &groups {
        maps = maps.with(Block::Chart(Box::new(map(group, "rate", |c| c.rate_per_s))));
        maps = maps.with(Block::Chart(Box::new(lines(group))));
        grids = grids.with(Block::Table(grid(group)));
        latency = latency.with(Block::Chart(Box::new(map(group, "latency", |c| c.latency_ns_avg))));
    }
    let mut sections = vec![overall(compared)];
    if !compared.cells.is_empty() {
        let cells = Section::full("cells", "Every cell").with(Block::Table(table(compared)));
        sections.extend([grids, maps, latency, cells]);
    }
    sections.extend(unlike(compared));
    if !compared.remarks.is_empty() {
        let list = Block::List(compared.remarks.clone());
        sections.push(Section::brief("remarks", "Remarks").with(list));
    }
    let (word, tone) = match (compared.outcome, &compared.winner) {
        // The headline counts sweeps instead of runs, because each sweep consists of many runs.
        (Outcome::TooFewRuns, _) if !compared.cells.is_empty() => {
            ("TOO FEW SWEEPS".to_owned(), Tone::Warn)
        }
        (outcome, winner) => headline_text(outcome, winner.as_deref(), 2),
    };
    Document {
        title: format!("{first} and {second}"),
        headline: Headline { word, tone, reason: compared.reason.clone(), figures: Vec::new() },
        sections,
        ..Document::default()
    }
}

fn overall(compared: &SweepComparison) -> Section {
    let [first, second] = &compared.names;
    let columns = vec![
        Column::words(&format!("{second} / {first}"), "figure"),
        Column::numbers("cells", "cells"),
        Column::numbers("geometric mean", "ratio_mean"),
        Column::numbers("least", "ratio_min"),
        Column::numbers("largest", "ratio_max"),
    ];
    let mut table = Table::new("", columns);
    let figures = [
        ("operations per second", &compared.rate),
        ("average latency", &compared.latency_avg),
        ("p99 latency", &compared.latency_p99),
    ];
    for (name, Overall { cells, ratio_mean, ratio_min, ratio_max }) in figures {
        let ratios = [ratio_mean, ratio_min, ratio_max];
        let mut row = vec![Cell::text(name), Cell::count(*cells as u64)];
        row.extend(ratios.map(|ratio| Cell::maybe(Unit::Plain, *ratio)));
        table.rows.push(row);
    }
    Section::brief("overall", "Over all cells").with(Block::Table(table))
}

fn unlike(compared: &SweepComparison) -> Option<Section> {
    let mut columns = vec![Column::words("condition", "condition")];
    columns.push(Column::words(&compared.names[0], "a"));
    columns.push(Column::words(&compared.names[1], "b"));
    let mut table = Table::new("", columns);
    for one in &compared.differences {
        let accepted = if one.accepted { " (accepted)" } else { "" };
        let mut row = vec![Cell::text(format!("{}{accepted}", one.name)).tone(Tone::Warn)];
        let value =
            |at: usize| one.values.get(at).map_or(Cell::unknown(), |v| Cell::text(v.clone()));
        row.extend([value(0), value(1)]);
        table.rows.push(row);
    }
    let section = Section::brief("unlike", "Conditions that differ");
    (!compared.differences.is_empty()).then(|| section.with(Block::Table(table)))
}

fn table(compared: &SweepComparison) -> Table {
    let [first, second] = &compared.names;
    let pair = |columns: &mut Vec<Column>, name: &str, key: &str| {
        columns.push(Column::numbers(first, &format!("a_{key}")).under(name));
        columns.push(Column::numbers(second, &format!("b_{key}")).under(name));
        columns.push(Column::numbers("ratio", &format!("{key}_ratio")).under(name));
    };
    let mut columns = vec![
        Column::words("pattern", "pattern"),
        Column::numbers("depth", "queue_depth"),
        Column::numbers("I/O size", "size_bytes"),
        Column::numbers("reads", "read_share"),
    ];
    pair(&mut columns, "operations per second", "rate_per_s");
    let interval = Column::numbers("95 % interval of the ratio", "rate_ratio_interval");
    columns.push(interval.under("operations per second"));
    pair(&mut columns, "average latency", "latency_ns_avg");
    pair(&mut columns, "p99", "latency_ns_p99");
    columns.push(Column::words("", "apart"));
    columns.push(Column::remarks("remark", "note"));
    let mut table = Table::new("", columns);
    table.rows = compared.cells.iter().map(row).collect();
    table
}

fn row(cell: &SweepCell) -> Vec<Cell> {
    let figure = |cells: &mut Vec<Cell>, unit: Unit, figure: &CellFigure, tone: Tone| {
        cells.push(Cell::maybe(unit, figure.first));
        cells.push(Cell::maybe(unit, figure.second));
        cells.push(Cell::maybe(Unit::Plain, figure.ratio).tone(tone));
    };
    let (word, tone) = match cell.outcome {
        CellOutcome::Higher => ("higher", Tone::Good),
        CellOutcome::Lower => ("lower", Tone::Bad),
        CellOutcome::NotSignificant => ("no significant difference", Tone::Plain),
        CellOutcome::TooFewSweeps => ("too few sweeps", Tone::Plain),
        CellOutcome::NotShown => ("not shown", Tone::Warn),
        CellOutcome::NotCompared => ("not compared", Tone::Warn),
    };
    let mut cells = vec![
        Cell::text(cell.shape.pattern.clone()),
        Cell::count(u64::from(cell.shape.queue_depth)),
        Cell::number(Unit::Size, cell.shape.size_bytes as f64),
        Cell::number(Unit::Share, cell.shape.read_percent / 100.0),
    ];
    figure(&mut cells, Unit::Rate, &cell.rate_per_s, tone);
    cells.push(match cell.rate_ratio_interval {
        Some([low, high]) => {
            Cell { value: Value::Interval(Unit::Plain, low, high), tone: Tone::Plain }
        }
        None => Cell::not_applicable(),
    });
    figure(&mut cells, Unit::Latency, &cell.latency_ns_avg, Tone::Plain);
    figure(&mut cells, Unit::Latency, &cell.latency_ns_p99, Tone::Plain);
    cells.push(Cell::text(word).tone(tone));
    cells.push(Cell::text(cell.note.clone()));
    cells
}

/// Returns a heat map of ratios over I/O size and read share. The middle of the colour scale is 1.
fn map(group: &ShapeGroup<'_, SweepCell>, key: &str, of: fn(&SweepCell) -> CellFigure) -> Plot {
    let figure = if key == "rate" { "operations per second" } else { "average latency" };
    let title = format!("ratio of {figure}");
    group.map(&format!("ratio-{key}"), &title, (Unit::Plain, "ratio", Some(1.0)), |c| of(c).ratio)
}

/// Returns a chart that shows the ratio of the rates and its interval for each I/O size. Each read
/// share has its own line.
fn lines(group: &ShapeGroup<'_, SweepCell>) -> Plot {
    let mut plot = Plot::new(
        &group.id("ratio-lines"),
        &format!("{}: ratio of operations per second, by I/O size", group.name()),
        Axis { scale: AxisScale::Log2, ..Axis::linear("I/O size", Unit::Size) },
        Axis::log("ratio", Unit::Plain),
    )
    .size(860.0, 260.0);
    for (colour, read) in (0u8..).zip(group.reads.iter().rev()) {
        let dot = |size: &u64| {
            let cell = group.at(*size, *read)?;
            let y_range = cell.rate_ratio_interval.map(|[low, high]| (low, high));
            Some(Dot { x: *size as f64, y: cell.rate_per_s.ratio?, y_range, ..Dot::default() })
        };
        let dots = group.sizes.iter().filter(|size| **size > 0).filter_map(dot).collect();
        let name = format!("{} reads", reads(*read));
        plot = plot.mark(Mark::Dots { name, colour, dots, joined: true });
    }
    plot.rule(Rule { level: true, at: 1.0, label: "same".to_owned(), kind: RuleKind::Note })
}

/// Returns the map for a terminal, with a row for each read share and a column for each size.
fn grid(group: &ShapeGroup<'_, SweepCell>) -> Table {
    let mut columns = vec![Column::numbers("reads", "read_share")];
    for bytes in &group.sizes {
        columns.push(Column::numbers(&size(*bytes), &format!("ratio_{bytes}")));
    }
    let mut table = Table::new(&group.name(), columns);
    for read in group.reads.iter().rev() {
        let mut row = vec![Cell::number(Unit::Share, *read / 100.0)];
        row.extend(group.sizes.iter().map(|bytes| match group.at(*bytes, *read) {
            Some(cell) => {
                let tone = match cell.outcome {
                    CellOutcome::Higher => Tone::Good,
                    CellOutcome::Lower => Tone::Bad,
                    _ => Tone::Plain,
                };
                Cell::maybe(Unit::Plain, cell.rate_per_s.ratio).tone(tone)
            }
            None => Cell::not_applicable(),
        }));
        table.rows.push(row);
    }
    table
}
