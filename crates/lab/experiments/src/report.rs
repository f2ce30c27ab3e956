//! Report of the analysis of a published experiment. It contains the answers, the published figures
//! and the results, the explanation, and the errors of the predictions.

mod arms;
mod definition;
mod front;
mod list;
mod panels;
mod predictions;
mod searches;
mod tables;

pub use definition::{definition_document, definition_json};
pub use list::{ExperimentSummary, list_document};

use plimsoll_judge::metrics::{self, Figure};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot};
use plimsoll_report::comparison::unit;
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone, Value};

use crate::analysis::{Analysis, ArmAnalysis, Ending, FigureAnalysis, Role};

/// Key of the rate of transactional I/Os of one server.
const RATE: &str = "achieved_iops_per_s";
/// Number of arms of the experiment above which the terminal shows tables for groups of arms,
/// without a sentence for each arm.
const ARMS_FEW: usize = 16;

/// Texts of the report, in addition to the figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Description, as a paragraph.
    pub about: String,
    /// Source of the publication.
    pub source: String,
    /// Lessons from the published experiment.
    pub taught: Vec<String>,
    /// Fitted parameters of the model, and the figures to which they were fitted.
    pub fitted: Vec<(String, String)>,
    /// Sentences about effects that are not modelled, and notes on the figures.
    pub remarks: Vec<String>,
    /// Model, seed and version, which identify this report.
    pub identity: Vec<(String, String)>,
}

/// Converts a text of several lines to a single paragraph.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the report of an analysis.
pub fn analysis_document(analysis: &Analysis, around: &Surroundings) -> Document {
    let mut sections = vec![answers(analysis)];
    if analysis.arms.iter().any(|arm| front::shows_front(analysis, arm)) {
        sections.push(front::fronts(analysis));
    }
    if analysis.tables.is_empty() {
        sections.extend([arms::verdicts(analysis), published(analysis), charts(analysis)]);
        sections.extend(panels::panels(analysis));
    } else {
        sections.push(predictions::of_tables(analysis));
        sections.extend(tables::tables(analysis));
    }
    sections.extend(searches::searches(analysis));
    sections.push(panels::failures(analysis));
    sections.push(why(analysis));
    // Inflated results are not goals, because a model does not have to reproduce their figures.
    let made = analysis.arms.iter().any(|arm| arm.expects.is_some());
    if let Some(score) = analysis.score.as_ref().filter(|_| analysis.tables.is_empty() && !made) {
        sections.push(predictions::predictions(analysis, score));
    }
    sections.push(tables::fitted(analysis));
    sections.push(provenance(around));
    sections.push(per_server(analysis));
    sections.push(runs(analysis));
    sections.retain(|section| !section.blocks.is_empty());
    Document {
        title: format!("{}: {}", analysis.name, analysis.title),
        description: around.about.clone(),
        identity: around.identity.clone(),
        headline: Headline {
            word: analysis.ending.label().to_owned(),
            tone: tone(analysis.ending),
            reason: analysis.reason.clone(),
            figures: Vec::new(),
        },
        sections,
        ..Document::default()
    }
}

fn tone(ending: Ending) -> Tone {
    match ending {
        Ending::Predicted | Ending::Caught => Tone::Good,
        Ending::Missed | Ending::NotCaught => Tone::Bad,
        Ending::Incomplete => Tone::Warn,
        // If all figures were inputs of the fit, a match with them is not evidence for the model.
        Ending::Fitted | Ending::Reported => Tone::Plain,
    }
}

fn answers(analysis: &Analysis) -> Section {
    let lines: Vec<String> =
        analysis.answers.iter().map(|one| format!("{} {}", one.question, one.answer)).collect();
    let section = Section::brief("answers", "Questions and answers");
    if lines.is_empty() { section } else { section.with(Block::List(lines)) }
}

/// Returns the experiment's arms that the tables of figures show. Arms of separate panels are not
/// included.
fn in_tables(analysis: &Analysis) -> Vec<&ArmAnalysis> {
    let apart = |arm: &ArmAnalysis| {
        analysis.panels.iter().any(|p| p.along.is_empty() && p.arms.contains(&arm.name))
    };
    analysis.arms.iter().filter(|arm| !apart(arm)).collect()
}

/// Returns the figures that at least one of the experiment's arms has, in the order of their first
/// occurrence.
fn keys(analysis: &Analysis) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for figure in in_tables(analysis).into_iter().flat_map(|arm| &arm.figures) {
        let seen = !figure.values.is_empty() || figure.published.is_some();
        if seen && !keys.contains(&figure.key) {
            keys.push(figure.key.clone());
        }
    }
    keys
}

/// Returns the figures that the tables show, which are judged and published figures.
fn shown_keys(analysis: &Analysis) -> Vec<String> {
    let all = keys(analysis);
    let shown: Vec<String> = all
        .iter()
        .filter(|key| {
            let published = |arm: &ArmAnalysis| {
                arm.figure(key).is_some_and(|figure| figure.published.is_some())
            };
            analysis.judged.contains(key) || analysis.arms.iter().any(published)
        })
        .cloned()
        .collect();
    if shown.is_empty() { all.into_iter().take(4).collect() } else { shown }
}

fn name_of(key: &str) -> &str {
    let found: Option<&'static Figure> = metrics::all().find(|figure| figure.key == key);
    found.map_or(key, |figure| figure.name)
}

fn published(analysis: &Analysis) -> Section {
    let says = came_out(analysis);
    let mut section = Section::brief("published", &format!("Published and {says}"));
    for key in shown_keys(analysis) {
        section = section.with(Block::Table(figure_table(analysis, &key)));
    }
    section
}

fn came_out(analysis: &Analysis) -> &'static str {
    if analysis.modelled { "modelled" } else { "measured" }
}

fn figure_table(analysis: &Analysis, key: &str) -> Table {
    let unit = unit(key);
    let arms: Vec<(&ArmAnalysis, &FigureAnalysis)> =
        in_tables(analysis).into_iter().filter_map(|arm| Some((arm, arm.figure(key)?))).collect();
    let servers = arms.iter().map(|(arm, _)| arm.servers).max().unwrap_or(1);
    let each = if servers > 1 && key == RATE { ", one server" } else { "" };
    let with_ratio = analysis.reference.is_some();
    let has_published = arms.iter().any(|(_, figure)| figure.published.is_some());
    let has_interval = arms.iter().any(|(_, figure)| figure.interval.is_some());
    let mut columns = vec![Column::words("arm", "arm")];
    if has_published {
        columns.push(Column::numbers("published", "published"));
    }
    columns.push(Column::numbers(came_out(analysis), "mean"));
    if has_interval {
        columns.push(Column::numbers("95 % interval", "interval").rank(2));
    }
    if has_published {
        columns.push(Column::numbers("ratio", "ratio"));
    }
    if with_ratio {
        let over = format!("relative to arm {}", analysis.reference.as_deref().unwrap_or_default());
        if has_published {
            columns.push(Column::numbers("published", "published_over").under(&over));
        }
        columns.push(Column::numbers(came_out(analysis), "over").under(&over));
    }
    if has_published {
        columns.push(Column::words("role in the fit", "role"));
    }
    let mut table = Table::new(&format!("{}{each}", capital(name_of(key))), columns);
    let judged = analysis.judged.iter().any(|judged| judged == key);
    for (arm, figure) in arms {
        let ratio_tone = match figure.ratio {
            Some(_) if figure.within(analysis.tolerance) => Tone::Good,
            Some(_) if judged => Tone::Bad,
            Some(_) => Tone::Warn,
            None => Tone::Plain,
        };
        let mut row = vec![Cell::text(arm.name.clone())];
        if has_published {
            row.push(Cell::maybe(unit, figure.published));
        }
        row.push(Cell::maybe(unit, figure.mean).tone(Tone::Strong));
        if has_interval {
            row.push(interval(unit, figure.interval));
        }
        if has_published {
            row.push(ratio(figure.ratio).tone(ratio_tone));
        }
        if with_ratio {
            if has_published {
                row.push(ratio(figure.published_over_reference));
            }
            row.push(ratio(figure.over_reference));
        }
        if has_published {
            row.push(Cell::text(role(figure.role)).tone(Tone::Faint));
        }
        table.rows.push(row);
    }
    table
}

fn role(role: Option<Role>) -> &'static str {
    role.map_or("none published", Role::label)
}

fn interval(unit: Unit, ends: Option<[f64; 2]>) -> Cell {
    match ends {
        Some([low, high]) => Cell { value: Value::Interval(unit, low, high), tone: Tone::Plain },
        None => Cell::not_applicable(),
    }
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats a ratio with two decimals. Runs and published figures are less precise than that.
fn ratio(value: Option<f64>) -> Cell {
    value.map_or(Cell::not_applicable(), |value| Cell::text(two(value)))
}

fn charts(analysis: &Analysis) -> Section {
    let mut section = Section::full("charts", "Side by side");
    if analysis.arms.len() > ARMS_FEW {
        return section;
    }
    for key in shown_keys(analysis).into_iter().take(4) {
        section = section.with(Block::Chart(Box::new(chart(analysis, &key))));
    }
    section
}

/// Returns a chart with one arm in each row: dots with intervals, next to the published figures.
fn chart(analysis: &Analysis, key: &str) -> Plot {
    let of = |arm: &&ArmAnalysis| arm.figure(key).is_some_and(|f| f.mean.or(f.published).is_some());
    let arms: Vec<&ArmAnalysis> = in_tables(analysis).into_iter().filter(of).collect();
    let names: Vec<String> = arms.iter().rev().map(|arm| arm.name.clone()).collect();
    let height = 90.0 + 34.0 * names.len() as f64;
    let dots = |published: bool| -> Vec<Dot> {
        (0u32..)
            .zip(arms.iter().rev())
            .filter_map(|(row, arm)| {
                let figure = arm.figure(key)?;
                let y = f64::from(row) + if published { 0.12 } else { -0.12 };
                if published {
                    return Some(Dot { x: figure.published?, y, ..Dot::default() });
                }
                let x_range = figure.interval.map(|[low, high]| (low, high));
                Some(Dot { x: figure.mean?, y, x_range, ..Dot::default() })
            })
            .collect()
    };
    let marks = [("published", true), (came_out(analysis), false)];
    let mut plot = Plot::new(
        &format!("arms-{}", key.replace('_', "-")),
        &capital(name_of(key)),
        Axis { low: Some(0.0), ..Axis::linear(name_of(key), unit(key)) },
        Axis::names("", names),
    )
    .size(860.0, height.max(150.0));
    for (colour, (name, published)) in (0u8..).zip(marks) {
        let dots = dots(published);
        if !dots.is_empty() {
            plot = plot.mark(Mark::Dots { name: name.to_owned(), colour, dots, joined: false });
        }
    }
    plot
}

/// Returns the mechanism of each arm of the experiment, in sentences.
fn why(analysis: &Analysis) -> Section {
    let few = analysis.arms.len() <= ARMS_FEW;
    let mut section = if few { Section::brief("why", "Why") } else { Section::full("why", "Why") };
    let shown = |arm: &&ArmAnalysis| !arm.mechanism.is_empty() && tables::is_corner(analysis, arm);
    for arm in analysis.arms.iter().filter(shown) {
        let lead = if arm.title.is_empty() {
            format!("Arm {}:", arm.name)
        } else {
            format!("Arm {}, {}:", arm.name, arm.title)
        };
        section = section.with(Block::Words(lead));
        section = section.with(Block::List(arm.mechanism.clone()));
    }
    section
}

fn per_server(analysis: &Analysis) -> Section {
    let mut section = Section::full("servers", "Server by server");
    for arm in analysis.arms.iter().filter(|arm| arm.per_server.len() > 1).take(ARMS_FEW) {
        let mut table = Table::new(
            &format!("Servers in the first run of arm {}", arm.name),
            vec![
                Column::words("server", "server"),
                Column::numbers("databases", "databases"),
                Column::of(Unit::Rate, "I/Os", "rate_per_s"),
                Column::of(Unit::Latency, "reads", "read_latency_ns_avg"),
                Column::of(Unit::Latency, "writes", "write_latency_ns_avg"),
                Column::of(Unit::Latency, "log writes", "log_latency_ns_avg"),
            ],
        );
        let ns = |ns: Option<u64>| Cell::maybe(Unit::Latency, ns.map(|ns| ns as f64));
        for server in &arm.per_server {
            table.rows.push(vec![
                Cell::text(server.name.clone()),
                Cell::count(server.databases.into()),
                Cell::number(Unit::Rate, server.rate_per_s),
                ns(server.read_latency_ns_avg),
                ns(server.write_latency_ns_avg),
                ns(server.log_latency_ns_avg),
            ]);
        }
        let all: f64 = arm.per_server.iter().map(|server| server.rate_per_s).sum();
        table.totals.push(vec![
            Cell::text("mean"),
            Cell::empty(),
            Cell::number(Unit::Rate, all / arm.per_server.len() as f64).tone(Tone::Strong),
            Cell::empty(),
            Cell::empty(),
            Cell::empty(),
        ]);
        section = section.with(Block::Table(table));
    }
    section
}

fn provenance(around: &Surroundings) -> Section {
    let mut section = Section::full("provenance", "Sources, lessons and model parameters");
    if !around.source.is_empty() {
        section = section.with(Block::Words(format!("Published figures: {}", around.source)));
    }
    if !around.taught.is_empty() {
        section = section.with(Block::Words("Lessons:".to_owned()));
        section = section.with(Block::List(around.taught.clone()));
    }
    if !around.remarks.is_empty() {
        section = section.with(Block::Words("Notes on these figures:".to_owned()));
        section = section.with(Block::List(around.remarks.clone()));
    }
    if !around.fitted.is_empty() {
        let mut table = Table::new(
            "Model parameters that are not from a datasheet or other documentation",
            vec![Column::words("parameter", "parameter"), Column::words("from", "from")],
        );
        for (name, from) in &around.fitted {
            table.rows.push(vec![Cell::text(name.clone()), Cell::text(from.clone())]);
        }
        section = section.with(Block::Table(table));
    }
    section
}

fn runs(analysis: &Analysis) -> Section {
    let mut table = Table::new(
        "",
        vec![
            Column::words("arm", "arm"),
            Column::words("run", "run"),
            Column::words("verdict", "verdict"),
        ],
    );
    for arm in &analysis.arms {
        for (run, verdict) in arm.run_ids.iter().zip(&arm.verdicts) {
            table.rows.push(vec![
                Cell::text(arm.name.clone()),
                Cell::text(run.clone()),
                Cell::text(verdict.label()),
            ]);
        }
    }
    Section::full("runs", "Runs").with(Block::Table(table))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}
