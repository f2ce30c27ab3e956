//! Report of a comparison's gate.

use plimsoll_judge::compare::{Comparison, Gate, GateFigure, GateOutcome, percent};

use crate::comparison::{comparison_document, unit};
use crate::document::{Block, Document, Headline, Section};
use crate::study::GEOMETRIC;
use crate::table::{Cell, Column, Table, Tone};

/// Returns the report of a comparison with its gate: the gate first, then the comparison.
pub fn gated_document(comparison: &Comparison, gate: &Gate) -> Document {
    let mut document = comparison_document(comparison);
    let reported = std::mem::replace(&mut document.headline, headline(gate));
    let comparison = format!("Comparison without the gate: {}. {}", reported.word, reported.reason);
    let section = section(gate).with(Block::Words(comparison));
    document.sections.insert(0, section);
    document
}

/// Returns the gate alone, for a pull request: the figures, the conditions that differ, and the
/// remarks.
pub fn gate_document(comparison: &Comparison, gate: &Gate) -> Document {
    let mut document = gated_document(comparison, gate);
    document.sections.retain(|one| matches!(one.id.as_str(), GATE | "unlike" | "remarks"));
    document
}

/// Identifier of the gate's section.
const GATE: &str = "gate";

fn headline(gate: &Gate) -> Headline {
    let (word, tone) = match gate.outcome {
        GateOutcome::Worse => ("WORSE", Tone::Bad),
        GateOutcome::NotWorse => ("NOT WORSE", Tone::Good),
        GateOutcome::Undecided => ("UNDECIDED", Tone::Warn),
    };
    Headline { word: word.to_owned(), tone, reason: gate.reason.clone(), figures: Vec::new() }
}

fn section(gate: &Gate) -> Section {
    let [base, new] = &gate.sides;
    let columns = vec![
        Column::words("figure", "figure"),
        Column::numbers(base, "base"),
        Column::numbers(new, "new"),
        Column::numbers("change", "change_share"),
        Column::numbers("95 % interval of the change", "change_interval"),
        Column::numbers("allowance", "allowance_share"),
        Column::words("outcome", "outcome"),
    ];
    let mut table = Table::new("", columns);
    table.rows = gate.figures.iter().map(row).collect();
    table.note = GEOMETRIC.to_owned();
    Section::brief(GATE, "Figures with their allowances").with(Block::Table(table))
}

fn row(figure: &GateFigure) -> Vec<Cell> {
    let unit = unit(&figure.key);
    let share = |share: Option<f64>| match share {
        Some(share) => Cell::text(percent(share)),
        None => Cell::not_applicable(),
    };
    let interval = figure.change_interval_share;
    let sign = if figure.higher_is_better { -1.0 } else { 1.0 };
    let (tone, more) = match (figure.outcome, figure.runs_more_per_side) {
        (GateOutcome::Worse, _) => (Tone::Bad, String::new()),
        (GateOutcome::NotWorse, _) => (Tone::Good, String::new()),
        (GateOutcome::Undecided, Some(1)) => {
            (Tone::Warn, ": needs 1 more run on each side of the comparison".to_owned())
        }
        (GateOutcome::Undecided, Some(runs)) => {
            (Tone::Warn, format!(": needs {runs} more runs on each side of the comparison"))
        }
        (GateOutcome::Undecided, None) => (Tone::Warn, String::new()),
    };
    vec![
        Cell::text(figure.figure.clone()).tone(Tone::Strong),
        Cell::maybe(unit, figure.base),
        Cell::maybe(unit, figure.new),
        share(figure.change_share),
        match interval {
            Some([low, high]) => Cell::text(format!("{} to {}", percent(low), percent(high))),
            None => Cell::not_applicable(),
        },
        Cell::text(percent(sign * figure.allowance_share)),
        Cell::text(format!("{}{more}", figure.outcome.label())).tone(tone),
    ]
}
