//! Report of a comparison.

use plimsoll_judge::compare::{Comparison, Divergence, Explanation, Outcome};

use crate::document::{Block, Document, Headline, Section};
use crate::number::{Letters, Unit, elapsed};
use crate::places;
use crate::run::{headroom, sentence};
use crate::study::ComparisonDrawing;
use crate::table::{Cell, Column, Table, Tone};

pub use crate::study::unit;

/// Returns the report of a comparison: conclusion, requirement, figures, and the conditions that
/// differ.
pub fn comparison_document(comparison: &Comparison) -> Document {
    let drawing = ComparisonDrawing(comparison);
    let mut sections = vec![standings(comparison), drawing.section()];
    sections.extend(comparison.explanation.as_ref().and_then(explain));
    if !comparison.differences.is_empty() {
        sections.push(drawing.differences());
    }
    if !comparison.remarks.is_empty() {
        let list = Block::List(comparison.remarks.clone());
        sections.push(Section::brief("remarks", "Remarks").with(list));
    }
    let winner = comparison.winner.as_deref();
    let (word, tone) = headline_text(comparison.outcome, winner, comparison.names.len());
    let (reason, figures) = (comparison.reason.clone(), drawing.figures());
    Document {
        title: comparison.names.join(" and "),
        headline: Headline { word, tone, reason, figures },
        identity: identity(comparison),
        sections,
        ..Document::default()
    }
}

/// Returns the plans, dates, hosts, file systems, kernels and devices of all runs, for the head of
/// the report.
fn identity(comparison: &Comparison) -> Vec<(String, String)> {
    let measured = &comparison.runs;
    let mut pairs = Vec::new();
    let works =
        places::listed(measured.iter().map(|run| run.does.clone()).filter(|d| !d.is_empty()));
    if !works.is_empty() {
        let lengths = measured.iter().map(|run| elapsed(run.place.measured_ns as f64));
        let lengths = places::listed(lengths);
        pairs.push((
            "workload".to_owned(),
            format!("{works}; the measurement of each run took {lengths}"),
        ));
    }
    if !measured.is_empty() {
        let plans = places::listed(measured.iter().map(|run| run.plan.clone()));
        pairs.push(("plan".to_owned(), plans));
    }
    pairs.extend(places::facts(measured.iter().map(|run| &run.place)));
    pairs
}

/// Describes where the sides of the comparison start to diverge, and the parts of their difference.
fn explain(explanation: &Explanation) -> Option<Section> {
    let divergence =
        |at: &Divergence| sentence(&format!("first {} that differs: {}", at.kind, at.says));
    let mut section = Section::brief("why", "Why they differ");
    if !explanation.divergences.is_empty() {
        section =
            section.with(Block::List(explanation.divergences.iter().map(divergence).collect()));
    }
    let mut table = Table::new(
        "",
        vec![
            Column::words("possible cause", "cause"),
            Column::of(Unit::Latency, "time per operation", "ns_per_operation"),
            Column::of(Unit::Share, "share of the difference", "share"),
        ],
    );
    for cause in &explanation.causes {
        table.rows.push(vec![
            Cell::text(cause.name.clone()),
            Cell::number(Unit::Latency, cause.ns_per_operation),
            Cell::number(Unit::Share, cause.share),
        ]);
    }
    if let Some(ns) = explanation.difference_ns.filter(|_| !explanation.causes.is_empty()) {
        let shown = Unit::Latency.show(ns.abs(), Letters::Unicode);
        let more = if ns < 0.0 { "less" } else { "more" };
        table.note = format!(
            "on average, an operation takes {shown} {more} on the second side of the comparison \
             than on the first; a row can explain part of this difference without being its cause"
        );
        section = section.with(Block::Table(table));
    }
    (!section.blocks.is_empty()).then_some(section)
}

/// Returns the headline of a comparison of `sides` sides.
pub(crate) fn headline_text(
    outcome: Outcome,
    winner: Option<&str>,
    sides: usize,
) -> (String, Tone) {
    match (outcome, winner.map(str::to_uppercase)) {
        (Outcome::AllMeetWithHeadroom, _) if sides == 2 => {
            ("BOTH MEET THE REQUIREMENT".to_owned(), Tone::Good)
        }
        (Outcome::AllMeetWithHeadroom, _) => ("ALL MEET THE REQUIREMENT".to_owned(), Tone::Good),
        (Outcome::OneMeets, Some(name)) => (format!("ONLY {name} MEETS IT"), Tone::Good),
        (Outcome::Differ, Some(name)) => (format!("{name} IS AHEAD"), Tone::Plain),
        (Outcome::OneMeets | Outcome::Differ, None) => ("DIFFERENT".to_owned(), Tone::Plain),
        (Outcome::NoneMeets, _) => ("NONE MEETS THE REQUIREMENT".to_owned(), Tone::Bad),
        (Outcome::NotBelieved, _) => ("NOT BELIEVED".to_owned(), Tone::Bad),
        (Outcome::NotShown, _) => ("NOT SHOWN".to_owned(), Tone::Warn),
        (Outcome::UnlikeConditions, _) => ("UNLIKE CONDITIONS".to_owned(), Tone::Warn),
        (Outcome::TooFewRuns, _) => ("TOO FEW RUNS".to_owned(), Tone::Warn),
        (Outcome::NotSignificant, _) => ("NO SIGNIFICANT DIFFERENCE".to_owned(), Tone::Plain),
    }
}

/// Compares each side of the comparison with its requirement. If no side has a requirement, lists
/// the runs of each side.
fn standings(comparison: &Comparison) -> Section {
    let mut columns = vec![
        Column::words("side", "side"),
        Column::numbers("runs", "runs"),
        Column::words("verdicts", "verdicts"),
    ];
    // The verdict on a run without a requirement is MEASURED, unless a rule fails.
    let required = comparison
        .requirement_results
        .iter()
        .any(|result| result.passed + result.failed > 0 || result.headroom_min.is_some());
    if required {
        columns.push(Column::numbers("lowest headroom", "headroom_min"));
    }
    let mut table = Table::new("", columns);
    for (name, requirement) in comparison.names.iter().zip(&comparison.requirement_results) {
        table.rows.push(vec![
            Cell::text(name.clone()),
            Cell::count(requirement.runs as u64),
            Cell::text(requirement.verdicts.clone()),
        ]);
        if let Some(row) = table.rows.last_mut().filter(|_| required) {
            row.push(headroom(requirement.headroom_min));
        }
    }
    let title = if required { "Compared with the requirement" } else { "Runs and verdicts" };
    Section::brief("standings", title).with(Block::Table(table))
}
