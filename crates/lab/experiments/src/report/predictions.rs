//! Quality of the predictions: each published figure, whole tables, and the goals.

use plimsoll_report::comparison::unit;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{ARMS_FEW, came_out, name_of};
use crate::analysis::{Analysis, Role, Score, TableScore};

pub(super) fn predictions(analysis: &Analysis, score: &Score) -> Section {
    let share = |value: f64| Unit::Share.show(value, Letters::Unicode);
    let or_none = |value: Option<f64>| value.map_or("n/a".to_owned(), share);
    let figures = |count: usize| match count {
        1 => "1 published figure was".to_owned(),
        count => format!("{count} published figures were"),
    };
    let inputs = match score.inputs {
        0 => String::new(),
        count => {
            format!(" {} used in the fit, so these errors do not include them.", figures(count))
        }
    };
    let says = format!(
        "{} not used in the fit. Their median error is {} for the model, {} for copying the nearest \
         row, and {} for interpolating between rows.{inputs}",
        figures(score.lines.len()),
        share(score.model_error_median),
        or_none(score.copied_error_median),
        or_none(score.interpolated_error_median)
    );
    let copied = score.lines.iter().any(|line| line.copied.is_some());
    let between = score.lines.iter().any(|line| line.interpolated.is_some());
    let mut columns = vec![
        Column::words("arm", "arm"),
        Column::words("figure", "figure"),
        Column::numbers("published", "published"),
        Column::numbers(came_out(analysis), "predicted"),
        Column::of(Unit::Share, "error", "error"),
    ];
    if copied {
        columns.push(Column::numbers("the row", "copied").under("copying a row"));
        columns.push(Column::of(Unit::Share, "error", "copied_error").under("copying a row"));
    }
    if between {
        columns.push(Column::numbers("the line", "interpolated").under("between rows"));
        columns.push(Column::of(Unit::Share, "error", "interpolated_error").under("between rows"));
    }
    let mut table = Table::new("", columns);
    for line in &score.lines {
        let unit = unit(&line.figure);
        let error = |value: Option<f64>| Cell::maybe(Unit::Share, value.map(|v| line.error_of(v)));
        let mut row = vec![
            Cell::text(line.arm.clone()),
            Cell::text(name_of(&line.figure)),
            Cell::number(unit, line.published),
            Cell::number(unit, line.predicted).tone(Tone::Strong),
            error(Some(line.predicted)),
        ];
        if copied {
            let copied = line.copied.as_ref().map(|copied| copied.1);
            row.extend([Cell::maybe(unit, copied), error(copied)]);
        }
        if between {
            row.extend([Cell::maybe(unit, line.interpolated), error(line.interpolated)]);
        }
        table.rows.push(row);
    }
    table.note =
        "the error is |ln(predicted / published)|, so half the published value and twice the \
         published value have the same error"
            .to_owned();
    let section = Section::brief("predictions", "Prediction errors").with(Block::Words(says));
    if analysis.arms.len() <= ARMS_FEW {
        return section.with(Block::Table(table));
    }
    section
}

/// Returns the section on the errors of whole tables and their goals.
pub(super) fn of_tables(analysis: &Analysis) -> Section {
    let section = Section::brief("scores", "Prediction errors of whole tables");
    if analysis.tables.iter().all(|table| table.scores.is_empty()) {
        return section;
    }
    let share = |title: &str, key: &str| Column::of(Unit::Share, title, key);
    let mut table = Table::new(
        "",
        vec![
            Column::words("table", "group"),
            Column::words("figure", "figure"),
            Column::words("role in the fit", "role"),
            Column::numbers("rows", "rows"),
            share("median", "model_median").under("the model"),
            share("p90", "model_p90").under("the model"),
            share("median", "copied_median").under("copying a row"),
            share("p90", "copied_p90").under("copying a row"),
            share("median", "interpolated_median").under("between rows"),
        ],
    );
    for one in &analysis.tables {
        table.rows.extend(one.scores.iter().map(|score| row(&one.group, score)));
    }
    table.note =
        "the error is |modelled / published - 1|; \"copying a row\" takes the figure from the same \
         row of a table that was an input; \"between rows\" interpolates other rows of the same \
         table, which the model does not use"
            .to_owned();
    let goals: Vec<String> = analysis
        .goals
        .iter()
        .map(|goal| {
            let word = if goal.reached { "Reached" } else { "NOT reached" };
            let name = name_of(&goal.goal.figure);
            format!("{word}: {}, {name}: {}.", goal.goal.group, goal.says)
        })
        .collect();
    let section = section.with(Block::Table(table));
    if goals.is_empty() { section } else { section.with(Block::List(goals)) }
}

fn row(group: &str, score: &TableScore) -> Vec<Cell> {
    let role = match score.role {
        Role::Input => "used in the fit",
        Role::Given => "not used in the fit",
        Role::Blind => "withheld until predicted",
        Role::Kept => "supplied by the user",
    };
    vec![
        Cell::text(group),
        Cell::text(name_of(&score.figure)),
        Cell::text(role),
        Cell::count(score.rows as u64),
        Cell::number(Unit::Share, score.model_median).tone(Tone::Strong),
        Cell::number(Unit::Share, score.model_p90),
        Cell::maybe(Unit::Share, score.copied_median),
        Cell::maybe(Unit::Share, score.copied_p90),
        Cell::maybe(Unit::Share, score.interpolated_median),
    ]
}
