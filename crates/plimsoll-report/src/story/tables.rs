//! Whole tables: I/O sizes down, read shares across, each cell what came out and how far it lies from what
//! was published; what they come down to, and what was fitted before.

use plimsoll_judge::story::{ArmStory, Story, TableStory};

use super::{came_out, capital, name_of};
use crate::chart::plot::Dot;
use crate::chart::{Axis, Mark, Plot};
use crate::comparison::unit;
use crate::document::{Block, Section};
use crate::number::{Letters, Unit, significant};
use crate::table::{Cell, Column, Table, Tone};

/// The figures that tables are drawn of.
const FIGURES: [&str; 2] = ["achieved_iops_per_s", "latency_ns_avg"];
/// An error of more is set off.
const ERROR_LARGE: f64 = 0.25;

/// What tables come down to, then each table.
pub(super) fn tables(story: &Story) -> Vec<Section> {
    let mut sections = vec![keep_in_mind(story), arithmetic(story)];
    for table in &story.tables {
        let (group, title) = (&table.group, &table.title);
        let heading = if title.is_empty() { group.clone() } else { format!("{group}: {title}") };
        let id: String = group
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let mut section = Section::brief(&format!("table-{id}"), &heading);
        for key in FIGURES {
            section = section.with(Block::Table(grid(story, table, key)));
        }
        sections.push(section);
    }
    sections.push(scatters(story));
    sections
}

fn keep_in_mind(story: &Story) -> Section {
    let mut section = Section::brief("keep", "Figures to keep in mind");
    for table in story.tables.iter().filter(|table| !table.keep_in_mind.is_empty()) {
        section = section.with(Block::Words(format!("{}:", table.group)));
        section = section.with(Block::List(table.keep_in_mind.clone()));
    }
    if !story.layouts.is_empty() {
        section = section.with(Block::Words("One layout over another:".to_owned()));
        section = section.with(Block::List(story.layouts.clone()));
    }
    section
}

fn arithmetic(story: &Story) -> Section {
    let mut section = Section::brief("arithmetic", "The published tables against themselves");
    for table in &story.arithmetic {
        section = section.with(Block::Words(format!("{}:", table.group)));
        section = section.with(Block::List(table.says.clone()));
    }
    section
}

fn arm_at<'a>(story: &'a Story, table: &TableStory, size: u64, read: f64) -> Option<&'a ArmStory> {
    story.arms.iter().find(|arm| {
        arm.group == table.group
            && arm.point.as_ref().is_some_and(|p| (p.size_bytes, p.read_percent) == (size, read))
    })
}

fn grid(story: &Story, table: &TableStory, key: &str) -> Table {
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
            let figure = arm_at(story, table, size, read).and_then(|arm| arm.figure(key));
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
                    Cell::text(format!("{shown} ({:+.0} %)", 100.0 * error)).tone(tone)
                }
                None => Cell::text(shown),
            });
        }
        grid.rows.push(row);
    }
    let says = came_out(story);
    grid.note = if has_published {
        format!("{says}, with the distance from the published figure")
    } else {
        format!("{says}; nothing was published for it")
    };
    grid
}

/// Published against what came out: a point on the diagonal was met.
fn scatters(story: &Story) -> Section {
    let mut section = Section::full("charts", "Side by side");
    for key in FIGURES {
        let mut plot = Plot::new(
            &format!("scatter-{}", key.replace('_', "-")),
            &format!("{}: published and {}", capital(name_of(key)), came_out(story)),
            Axis::log("published", unit(key)),
            Axis::log(came_out(story), unit(key)),
        )
        .size(860.0, 420.0);
        let mut colour = 0;
        let mut ends: Option<(f64, f64)> = None;
        for table in &story.tables {
            let of = story.arms.iter().filter(|arm| arm.group == table.group);
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

/// Whether an arm's mechanism is told: every arm, but of tables the corners only.
pub(super) fn is_corner(story: &Story, arm: &ArmStory) -> bool {
    let Some(table) = story.tables.iter().find(|table| table.group == arm.group) else {
        return true;
    };
    let Some(point) = &arm.point else { return true };
    let ends = |of: &[f64], value: f64| of.first() == Some(&value) || of.last() == Some(&value);
    let sizes: Vec<f64> = table.sizes_bytes.iter().map(|size| *size as f64).collect();
    ends(&sizes, point.size_bytes as f64) && ends(&table.read_percents, point.read_percent)
}

/// What was fitted before the arms ran.
pub(super) fn fitted(story: &Story) -> Section {
    let section = Section::brief("fitted", "What was fitted before");
    let Some(first) = story.fitted.first() else { return section };
    let mut table = Table::new(
        &format!("Free parameters, fitted to {}", first.table),
        vec![
            Column::words("parameter", "path"),
            Column::numbers("value", "value"),
            Column::numbers("from", "low").under("sought"),
            Column::numbers("to", "high").under("sought"),
        ],
    );
    for one in &story.fitted {
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
