//! Shows whole tables, their summary, and the fit. The rows of a table are I/O sizes, and the
//! columns are read shares. Each cell has the result and its deviation from the published figure.

use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, HeatMap, Mark, Plot};
use plimsoll_report::comparison::unit;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::{Letters, Unit, significant};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{came_out, capital, name_of};
use crate::analysis::{Analysis, ArmAnalysis, LayoutRatio, TableAnalysis};

/// Keys of the figures for which tables are shown.
const FIGURES: [&str; 2] = ["achieved_iops_per_s", "latency_ns_avg"];
/// Error above which a cell is highlighted.
const ERROR_LARGE: f64 = 0.25;

/// Returns the sections on tables: a summary, then each table.
pub(super) fn tables(analysis: &Analysis) -> Vec<Section> {
    let mut sections = vec![keep_in_mind(analysis), layouts(analysis), scatters(analysis)];
    for table in &analysis.tables {
        let group = &table.group;
        let mut section = Section::brief(&format!("table-{}", slug(group)), &capital(group));
        if !table.title.is_empty() {
            section = section.with(Block::Words(format!("{}.", capital(&table.title))));
        }
        for key in FIGURES {
            section = section.with(Block::Chart(Box::new(map(analysis, table, key))));
            section = section.with(Block::Table(grid(analysis, table, key)));
        }
        sections.push(section);
    }
    sections.push(arithmetic(analysis));
    sections
}

fn slug(text: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(one).collect()
}

/// Returns the key figures: a row for each table, followed by a row with the published figures.
fn keep_in_mind(analysis: &Analysis) -> Section {
    let section = Section::brief("keep", "Key figures");
    let Some(first) = analysis.tables.iter().find(|table| !table.kept.is_empty()) else {
        return section;
    };
    let mut columns = vec![Column::words("table", "group")];
    columns.extend(first.kept.iter().map(|kept| Column::numbers(&kept.name, &slug(&kept.name))));
    let mut grid = Table::new("", columns);
    for table in &analysis.tables {
        let of = |name: &str| table.kept.iter().find(|kept| kept.name == name);
        let names = || first.kept.iter().map(|kept| kept.name.as_str());
        let mut row = vec![Cell::text(table.group.clone()).tone(Tone::Strong)];
        row.extend(names().map(|name| match of(name) {
            Some(kept) => Cell::text(kept.modelled.clone()),
            None => Cell::not_applicable(),
        }));
        grid.rows.push(row);
        if table.kept.iter().any(|kept| kept.published.is_some()) {
            let mut row = vec![Cell::text("as published").tone(Tone::Faint)];
            let published = |name| of(name).and_then(|kept| kept.published.clone());
            row.extend(names().map(|name| match published(name) {
                Some(text) => Cell::text(text).tone(Tone::Faint),
                None => Cell::not_applicable(),
            }));
            grid.rows.push(row);
        }
    }
    section.with(Block::Table(grid))
}

/// Returns the section that compares the rates of layouts. Each row shows the rates of one layout,
/// divided by the rates of another layout.
fn layouts(analysis: &Analysis) -> Section {
    let section = Section::brief("layouts", "Rates of one layout relative to another layout");
    let Some(first) = analysis.layouts_over.iter().max_by_key(|layout| layout.ratios.len()) else {
        return section;
    };
    let mut columns = vec![Column::words("rates of", "group"), Column::words("over", "over")];
    for ratio in &first.ratios {
        let load = match ratio.read_percent {
            100.0 => "reads".to_owned(),
            0.0 => "writes".to_owned(),
            share => format!("{share:.0} % reads"),
        };
        let size = Unit::Size.show(ratio.size_bytes as f64, Letters::Unicode);
        let key = format!("ratio_{}_{}", ratio.read_percent, ratio.size_bytes);
        columns.push(Column::numbers(&size, &key).under(&load));
    }
    let mut grid = Table::new("", columns);
    for layout in &analysis.layouts_over {
        let cells = |published: bool| {
            first.ratios.iter().map(move |head| {
                let same = |r: &&LayoutRatio| {
                    (r.size_bytes, r.read_percent) == (head.size_bytes, head.read_percent)
                };
                let found = layout.ratios.iter().find(same);
                let value =
                    found.and_then(|r| if published { r.published } else { Some(r.modelled) });
                value.map_or(Cell::not_applicable(), |value| {
                    let tone = if published { Tone::Faint } else { Tone::Plain };
                    Cell::text(format!("{value:.2}")).tone(tone)
                })
            })
        };
        let mut row = vec![Cell::text(layout.group.clone()).tone(Tone::Strong)];
        row.push(Cell::text(layout.over.clone()));
        row.extend(cells(false));
        grid.rows.push(row);
        if layout.ratios.iter().any(|ratio| ratio.published.is_some()) {
            let mut row = vec![Cell::text("as published").tone(Tone::Faint), Cell::empty()];
            row.extend(cells(true));
            grid.rows.push(row);
        }
    }
    grid.note = "each ratio compares the rates of two layouts under the same load".to_owned();
    section.with(Block::Table(grid))
}

/// Returns a heat map over sizes and read shares. Each cell shows the deviation from the published
/// figure, or the value if no figures were published.
fn map(analysis: &Analysis, table: &TableAnalysis, key: &str) -> Plot {
    let edges = |count: usize| (0..=count).map(|at| at as f64 - 0.5).collect();
    let (sizes, mut reads) = (&table.sizes_bytes, table.read_percents.clone());
    reads.reverse();
    let figure = |size, read| arm_at(analysis, table, size, read).and_then(|arm| arm.figure(key));
    // The value is rounded to whole percents, because a cell has no space for more digits.
    let held = |size, read| {
        let ratio = figure(size, read).and_then(|figure| figure.ratio)?;
        // Adding 0.0 converts "-0 %" to "0 %".
        Some((100.0 * (ratio - 1.0)).round() / 100.0 + 0.0)
    };
    let all = || reads.iter().flat_map(|read| sizes.iter().map(move |size| (*size, *read)));
    let published = all().any(|(size, read)| held(size, read).is_some());
    let value = |(size, read)| match published {
        true => held(size, read),
        false => figure(size, read).and_then(|figure| figure.mean),
    };
    let (unit, title, about) = match published {
        true => (
            Unit::Share,
            format!("deviation of the {} from the published figure", came_out(analysis)),
            Some(0.0),
        ),
        false => (unit(key), name_of(key).to_owned(), None),
    };
    let heat = HeatMap {
        x_edges: edges(sizes.len()),
        y_edges: edges(reads.len()),
        cells: all().map(value).collect(),
        unit,
        title: String::new(),
        log: !published,
        about,
        values: true,
    };
    let size = |bytes: &u64| Unit::Size.show(*bytes as f64, Letters::Unicode);
    Plot::new(
        &format!("map-{}-{}", slug(&table.group), slug(key)),
        &format!("{}: {title}", capital(name_of(key))),
        Axis::names("I/O size", sizes.iter().map(size).collect()),
        Axis::names("reads", reads.iter().map(|read| format!("{read:.0} %")).collect()),
    )
    .mark(Mark::Heat(heat))
    .size(860.0, 90.0 + 34.0 * reads.len() as f64)
}

fn arithmetic(analysis: &Analysis) -> Section {
    let mut section = Section::brief("arithmetic", "Consistency of the published tables");
    for table in &analysis.arithmetic {
        section = section.with(Block::Words(format!("{}:", table.group)));
        section = section.with(Block::List(table.says.clone()));
    }
    section
}

fn arm_at<'a>(
    analysis: &'a Analysis,
    table: &TableAnalysis,
    size: u64,
    read: f64,
) -> Option<&'a ArmAnalysis> {
    analysis.arms.iter().find(|arm| {
        arm.group == table.group
            && arm.point.as_ref().is_some_and(|p| (p.size_bytes, p.read_percent) == (size, read))
    })
}

fn grid(analysis: &Analysis, table: &TableAnalysis, key: &str) -> Table {
    let mut columns = vec![Column::words("I/O size", "size")];
    for read in &table.read_percents {
        let id = format!("read_{read}_percent");
        columns.push(Column::numbers(&format!("{read} % reads"), &id));
    }
    let mut grid = Table::new(&capital(name_of(key)), columns);
    let mut has_published = false;
    for &size in &table.sizes_bytes {
        let mut row = vec![Cell::number(Unit::Size, size as f64).tone(Tone::Strong)];
        for &read in &table.read_percents {
            let figure = arm_at(analysis, table, size, read).and_then(|arm| arm.figure(key));
            let Some(mean) = figure.and_then(|figure| figure.mean) else {
                row.push(Cell::not_applicable());
                continue;
            };
            let shown = match unit(key) {
                Unit::Rate => significant(mean, 4),
                of => of.show(mean, Letters::Unicode),
            };
            let error = figure.and_then(|figure| figure.ratio).map(|ratio| ratio - 1.0);
            has_published |= error.is_some();
            row.push(match error {
                Some(error) => {
                    let tone = if error.abs() > ERROR_LARGE { Tone::Warn } else { Tone::Plain };
                    // An error of half a percent or less is shown as 0 %, never as "-0 %".
                    let percent = match (100.0 * error).round() as i64 {
                        0 => "0".to_owned(),
                        percent => format!("{percent:+}"),
                    };
                    Cell::text(format!("{shown} ({percent} %)")).tone(tone)
                }
                None => Cell::text(shown),
            });
        }
        grid.rows.push(row);
    }
    let says = came_out(analysis);
    grid.note = if has_published {
        format!("{says}, with the deviation from the published figure")
    } else {
        format!("{says}; no figures were published")
    };
    grid
}

/// Plots results over published figures: a point on the diagonal is a match.
fn scatters(analysis: &Analysis) -> Section {
    let mut section = Section::full("charts", "Published figures and results, point by point");
    for key in FIGURES {
        let mut plot = Plot::new(
            &format!("scatter-{}", key.replace('_', "-")),
            &format!("{}: published and {}", capital(name_of(key)), came_out(analysis)),
            Axis::log("published", unit(key)),
            Axis::log(came_out(analysis), unit(key)),
        )
        .size(860.0, 420.0);
        let mut colour = 0;
        let mut ends: Option<(f64, f64)> = None;
        for table in &analysis.tables {
            let of = analysis.arms.iter().filter(|arm| arm.group == table.group);
            let dots: Vec<Dot> = of
                .filter_map(|arm| {
                    let figure = arm.figure(key)?;
                    Some(Dot { x: figure.published?, y: figure.mean?, ..Dot::default() })
                })
                .collect();
            for dot in &dots {
                let (low, high) = ends.unwrap_or((dot.x, dot.x));
                ends = Some((low.min(dot.x).min(dot.y), high.max(dot.x).max(dot.y)));
            }
            if !dots.is_empty() {
                plot = plot.mark(Mark::Dots {
                    name: table.group.clone(),
                    colour,
                    dots,
                    joined: false,
                });
                colour += 1;
            }
        }
        let Some((low, high)) = ends else { continue };
        let dots = [low, high].map(|at| Dot { x: at, y: at, ..Dot::default() }).to_vec();
        let name = "as published".to_owned();
        plot = plot.mark(Mark::Dots { name, colour, dots, joined: true });
        section = section.with(Block::Chart(Box::new(plot)));
    }
    section
}

/// Returns true if the mechanism of an arm of the experiment is shown. For tables, only the
/// mechanism of the corner points is shown.
pub(super) fn is_corner(analysis: &Analysis, arm: &ArmAnalysis) -> bool {
    let Some(table) = analysis.tables.iter().find(|table| table.group == arm.group) else {
        return true;
    };
    let Some(point) = &arm.point else { return true };
    let ends = |of: &[f64], value: f64| of.first() == Some(&value) || of.last() == Some(&value);
    let sizes: Vec<f64> = table.sizes_bytes.iter().map(|size| *size as f64).collect();
    ends(&sizes, point.size_bytes as f64) && ends(&table.read_percents, point.read_percent)
}

/// Returns the section on the parameters that were fitted before the experiment's arms ran.
pub(super) fn fitted(analysis: &Analysis) -> Section {
    let section = Section::brief("fitted", "Fitted parameters");
    let Some(first) = analysis.fitted.first() else { return section };
    let mut table = Table::new(
        &format!("Free parameters, fitted to {}", first.table),
        vec![
            Column::words("parameter", "path"),
            Column::numbers("value", "value"),
            Column::numbers("from", "low").under("sought"),
            Column::numbers("to", "high").under("sought"),
        ],
    );
    for one in &analysis.fitted {
        let digits = |value: f64| Cell::text(significant(value, 4));
        table.rows.push(vec![
            Cell::text(one.path.clone()),
            digits(one.value),
            digits(one.bounds.0),
            digits(one.bounds.1),
        ]);
    }
    section.with(Block::Table(table))
}
