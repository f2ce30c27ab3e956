//! Displays groups of arms of the experiment, as a line over a quantity or as a table. Also
//! displays the rates and latencies around a node failure.

use plimsoll_report::chart::plot::{Dot, Rule, RuleKind, Series};
use plimsoll_report::chart::{Axis, Mark, Plot};
use plimsoll_report::comparison::unit;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{came_out, capital, name_of};
use crate::analysis::{Analysis, ArmAnalysis, Failure, Panel};

fn slug(text: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(one).take(40).collect()
}

/// Returns a section for each panel title. Panels that show no arm of the experiment are omitted.
pub(super) fn panels(analysis: &Analysis) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for panel in &analysis.panels {
        let known =
            |arm: &&ArmAnalysis| arm.figure(&panel.figure).is_some_and(|f| f.mean.is_some());
        let named = |name: &String| analysis.arms.iter().find(|arm| arm.name == *name);
        let arms: Vec<&ArmAnalysis> = panel.arms.iter().filter_map(named).filter(known).collect();
        if arms.is_empty() {
            continue;
        }
        let block = match panel.along.is_empty() {
            true => Block::Table(table(analysis, panel, &arms)),
            false => Block::Chart(Box::new(line(analysis, panel))),
        };
        match sections.last_mut().filter(|section| section.title == panel.title) {
            Some(section) => section.blocks.push(block),
            None => {
                let id = format!("panel-{}", slug(&panel.title));
                sections.push(Section::brief(&id, &panel.title).with(block));
            }
        }
    }
    sections
}

fn table(analysis: &Analysis, panel: &Panel, arms: &[&ArmAnalysis]) -> Table {
    let unit = unit(&panel.figure);
    let mut table = Table::new(
        &capital(name_of(&panel.figure)),
        vec![
            Column::words("arm", "arm"),
            Column::numbers(came_out(analysis), "mean"),
            Column::words("description", "title"),
        ],
    );
    for arm in arms {
        let mean = arm.figure(&panel.figure).and_then(|figure| figure.mean);
        table.rows.push(vec![
            Cell::text(arm.name.clone()),
            Cell::maybe(unit, mean).tone(Tone::Strong),
            Cell::text(arm.title.clone()),
        ]);
    }
    table
}

/// Plots a figure over the panel's increasing quantity, next to the published figures.
fn line(analysis: &Analysis, panel: &Panel) -> Plot {
    let unit = unit(&panel.figure);
    let dots = |published: bool| -> Vec<Dot> {
        let one = |(name, at): (&String, &f64)| {
            let arm = analysis.arms.iter().find(|arm| arm.name == *name)?;
            let figure = arm.figure(&panel.figure)?;
            let (y, y_range) = match published {
                true => (figure.published?, None),
                false => (figure.mean?, figure.interval.map(|[low, high]| (low, high))),
            };
            let label = if published { String::new() } else { name.clone() };
            Some(Dot { x: *at, y, y_range, label, ..Dot::default() })
        };
        panel.arms.iter().zip(&panel.at).filter_map(one).collect()
    };
    let servers = analysis.arms.iter().map(|arm| arm.servers).max().unwrap_or(1);
    let each = if servers > 1 && panel.figure == super::RATE { ", one server" } else { "" };
    let mut plot = Plot::new(
        &format!("along-{}-{}", slug(&panel.along), slug(&panel.figure)),
        &format!("{}{each}, over {}", capital(name_of(&panel.figure)), panel.along),
        Axis { low: Some(0.0), ..Axis::linear(&panel.along, Unit::Count) },
        Axis { low: Some(0.0), ..Axis::linear(name_of(&panel.figure), unit) },
    )
    .size(860.0, 300.0);
    for (colour, (name, published)) in
        (0u8..).zip([("published", true), (came_out(analysis), false)])
    {
        let dots = dots(published);
        if !dots.is_empty() {
            let name = name.to_owned();
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: !published });
        }
    }
    plot
}

/// Returns the section on nodes that failed during the measurement.
pub(super) fn failures(analysis: &Analysis) -> Section {
    let mut section = Section::brief("failures", "Node failure");
    for arm in &analysis.arms {
        let Some(failure) = &arm.failure else { continue };
        section = section.with(Block::Words(format!("Arm {}: {}", arm.name, failure.says)));
        let lines = [
            ("rate", "I/Os", Unit::Rate, failure.rates_per_s.iter().map(|r| Some(*r)).collect()),
            ("read", "database reads, average", Unit::Latency, failure.read_latency_ns.clone()),
        ];
        for (id, title, unit, values) in lines {
            let plot =
                course(&format!("failure-{id}-{}", slug(&arm.name)), title, unit, failure, values);
            section = section.with(Block::Chart(Box::new(plot)));
        }
    }
    section
}

/// Plots a figure over the time of the measured phase, and marks the failure.
fn course(id: &str, title: &str, unit: Unit, failure: &Failure, values: Vec<Option<f64>>) -> Plot {
    let middle = |at: usize| (at as f64 + 0.5) * failure.interval_ns as f64;
    let points = values.into_iter().enumerate().map(|(at, value)| (middle(at), value)).collect();
    let seconds = failure.interval_ns as f64 / 1e9;
    Plot::new(
        id,
        &format!(
            "{} before and after a node failure, averaged over {seconds:.0} s",
            capital(title)
        ),
        Axis { low: Some(0.0), ..Axis::linear("measured", Unit::Elapsed) },
        Axis { low: Some(0.0), ..Axis::linear(title, unit) },
    )
    .size(860.0, 220.0)
    .mark(Mark::Line(Series { name: String::new(), colour: 1, points }))
    .rule(Rule {
        level: false,
        at: failure.at_ns as f64,
        label: "the node fails".to_owned(),
        kind: RuleKind::Note,
    })
}
