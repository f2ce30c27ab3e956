//! Report of `model new`.

use plimsoll_report::document::{Block, Document, Section};

use super::Outcome;
use crate::fit::ScoresOut;

pub(super) fn document(found: &Outcome) -> Document {
    let mut document = found.fit.document();
    let mut says = vec![
        format!("Chosen: {} ({}).", found.structure, found.says),
        format!(
            "Number of clients: {}, computed from the rows as rate x latency (Little's law).",
            found.clients
        ),
    ];
    if let Some(closest) = found.shipped.first() {
        says.push(format!(
            "Of the shipped models, {} ({}) has the smallest errors on these rows: the median \
             errors are {:.0} % for the rate and {:.0} % for the latency{}.",
            closest.model,
            closest.title,
            100.0 * closest.scores.ops_error_median,
            100.0 * closest.scores.latency_error_median,
            if found.shipped_is_closer() {
                ", which are smaller than those of the new model"
            } else {
                ""
            }
        ));
    }
    let structures = found.structures.iter().map(|structure| {
        let n = structure.free_parameters;
        (format!("{}, {n} free parameters", structure.structure), structure.scores)
    });
    let structures: Vec<(String, ScoresOut)> = structures.collect();
    let shipped: Vec<(String, ScoresOut)> =
        found.shipped.iter().map(|model| (model.model.clone(), model.scores)).collect();
    let sections = [
        Section::brief("structure", "Structure")
            .with(Block::List(says))
            .with(Block::Table(ScoresOut::table("structure, fitted quickly", &structures))),
        Section::brief("shipped", "Errors of the shipped models for the same rows")
            .with(Block::Table(ScoresOut::table("model", &shipped))),
    ];
    document.sections.splice(1..1, sections);
    document
}
