//! Report of `model new`.

use plimsoll_report::document::{Block, Document, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table};

use super::Outcome;
use crate::fit::ScoresOut;

pub(super) fn document(found: &Outcome) -> Document {
    let mut document = found.fit.document();
    let mut says = vec![
        format!("Chosen: {} ({}).", found.structure, found.says),
        format!("Clients: {}, from rate x latency of the rows (Little's law).", found.clients),
    ];
    if let Some(closest) = found.shipped.first() {
        says.push(format!(
            "The closest shipped model is {} ({}). It has a median error of {:.0} % of the rate and \
             {:.0} % of the latency on these rows{}.",
            closest.model,
            closest.title,
            100.0 * closest.scores.ops_error_median,
            100.0 * closest.scores.latency_error_median,
            if found.shipped_is_closer() { ": it is closer than the new model" } else { "" }
        ));
    }
    let structures = found.structures.iter().map(|structure| {
        let n = structure.free_parameters;
        (format!("{}, {n} free parameters", structure.structure), structure.scores)
    });
    let shipped = found.shipped.iter().map(|model| (model.model.clone(), model.scores));
    let sections = [
        Section::brief("structure", "Structure")
            .with(Block::List(says))
            .with(Block::Table(errors_table("structure, fitted quickly", structures))),
        Section::brief("shipped", "Shipped models on the same rows")
            .with(Block::Table(errors_table("model", shipped))),
    ];
    document.sections.splice(1..1, sections);
    document
}

fn errors_table(title: &str, rows: impl Iterator<Item = (String, ScoresOut)>) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words(title, "name"),
            Column::of(Unit::Share, "median", "ops_error_median").under("rate"),
            Column::of(Unit::Share, "p90", "ops_error_p90").under("rate"),
            Column::of(Unit::Share, "median", "latency_error_median").under("latency"),
            Column::of(Unit::Share, "p90", "latency_error_p90").under("latency"),
        ],
    );
    for (name, scores) in rows {
        let mut cells = vec![Cell::text(name)];
        cells.extend(scores.cells());
        table.rows.push(cells);
    }
    table
}
