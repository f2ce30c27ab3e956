//! Report of `model predict`.

use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Unit, significant};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use super::{CellOut, Outcome};

/// Number of significant digits of a predicted figure.
const DIGITS: usize = 3;

pub(super) fn document(found: &Outcome) -> Document {
    let mut sections = vec![
        Section::brief("predicted", "Predicted cells").with(Block::Table(cells_table(found))),
        Section::brief("errors", "Errors on measured rows that were left out")
            .with(Block::Table(errors_table(found))),
    ];
    sections[1].blocks.push(Block::List(remarks(found)));
    let word = if found.is_complete() { "PREDICTED" } else { "NOT PREDICTED" };
    let reason = match found.cells.iter().find_map(|cell| cell.outside.as_ref()) {
        Some(why) => format!("{why}."),
        None => found.cells.first().map_or_else(String::new, |cell| first(found, cell)),
    };
    Document {
        title: "prediction".to_owned(),
        headline: Headline { word: word.to_owned(), reason, ..Headline::default() },
        sections,
        ..Document::default()
    }
}

/// Returns the first figure of a cell, as a sentence.
fn first(found: &Outcome, cell: &CellOut) -> String {
    let Some(figure) = found.figures.first() else { return String::new() };
    let Some(value) = cell.figures.get(&figure.name) else { return String::new() };
    format!(
        "{} {} at {}; {:.0} % interval {} to {}.",
        figure.name,
        significant(value.value, DIGITS),
        label(cell),
        100.0 * found.coverage,
        significant(value.low, DIGITS),
        significant(value.high, DIGITS)
    )
}

fn label(cell: &CellOut) -> String {
    let parts: Vec<String> =
        cell.cell.iter().map(|(name, value)| format!("{name} {value}")).collect();
    parts.join(", ")
}

fn cells_table(found: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("cell", "cell"),
            Column::words("figure", "figure"),
            Column::numbers("predicted", "value"),
            Column::numbers("from", "low"),
            Column::numbers("to", "high"),
        ],
    );
    for cell in &found.cells {
        if let Some(why) = &cell.outside {
            let none = Cell::not_applicable;
            let why = Cell::text(format!("outside: {why}")).tone(Tone::Warn);
            table.rows.push(vec![Cell::text(label(cell)), why, none(), none(), none()]);
        }
        for figure in &found.figures {
            let Some(value) = cell.figures.get(&figure.name) else { continue };
            let number = |value: f64| Cell::text(significant(value, DIGITS));
            table.rows.push(vec![
                Cell::text(label(cell)),
                Cell::text(figure.name.clone()),
                number(value.value),
                number(value.low),
                number(value.high),
            ]);
        }
    }
    table
}

fn errors_table(found: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("figure", "figure"),
            Column::numbers("rows", "rows"),
            Column::of(Unit::Share, "median", "error_median").under("interpolation"),
            Column::of(Unit::Share, "p90", "error_p90").under("interpolation"),
            Column::of(Unit::Share, "median", "copying_error_median").under("nearest row"),
        ],
    );
    for figure in &found.figures {
        table.rows.push(vec![
            Cell::text(figure.name.clone()),
            Cell::count(figure.rows as u64),
            Cell::number(Unit::Share, figure.error_median),
            Cell::number(Unit::Share, figure.error_p90),
            Cell::number(Unit::Share, figure.copying_error_median),
        ]);
    }
    table
}

fn remarks(found: &Outcome) -> Vec<String> {
    let mut remarks = vec![format!(
        "To estimate the errors, all rows with the same value of an axis were left out together and \
         predicted. For {:.0} % of these rows, the interval contains the measured figure. The \
         intervals do not account for changes of the system since the measurement.",
        100.0 * found.coverage
    )];
    let no_better =
        found.figures.iter().filter(|figure| figure.error_median >= figure.copying_error_median);
    let no_better: Vec<&str> = no_better.map(|figure| figure.name.as_str()).collect();
    if !no_better.is_empty() {
        remarks.push(format!(
            "For these figures, a copy of the nearest row is at least as accurate as an \
             interpolation: {}.",
            no_better.join(", ")
        ));
    }
    if !found.columns_ignored.is_empty() {
        remarks.push(format!(
            "Columns that are neither axes nor figures: {}. Use --axis to treat a column as an \
             axis.",
            found.columns_ignored.join(", ")
        ));
    }
    if !found.figures_ignored.is_empty() {
        remarks.push(format!(
            "Figures that are in too few rows for a prediction: {}.",
            found.figures_ignored.join(", ")
        ));
    }
    if found.invalid_rows > 0 {
        remarks.push(format!(
            "Number of rows that were left out because they are INVALID: {}.",
            found.invalid_rows
        ));
    }
    remarks
}
