//! What a comparison found, as a report.

use plimsoll_judge::compare::{Comparison, Metric, Outcome, SideFigure};
use plimsoll_judge::metrics::{self, Counted, Figure};

use crate::document::{Block, Document, Headline, Section};
use crate::number::Unit;
use crate::study;
use crate::table::{Cell, Column, Table, Tone};

/// The report of a comparison: what follows, the requirement, the figures, the unlike conditions.
pub fn comparison_document(comparison: &Comparison) -> Document {
    let ends = |ends: Option<[f64; 2]>| ends.map(|[low, high]| (low, high));
    let side = |side: &SideFigure| study::Side {
        mean: side.mean,
        interval: ends(side.interval),
        spread_share: side.spread,
        ratio: side.ratio,
        ratio_interval: ends(side.ratio_interval),
    };
    let shown = |metric: &Metric| study::Metric {
        name: metric.name.clone(),
        key: metric.key.clone(),
        unit: unit(&metric.key),
        more_is_better: Some(metric.higher_is_better),
        sides: metric.sides.iter().map(side).collect(),
        says: metric.says.clone(),
    };
    let unlike = comparison.unlike.iter().map(|one| {
        let accepted = if one.accepted { " (accepted)" } else { "" };
        (format!("{}{accepted}", one.name), one.values.clone())
    });
    let mut document = study::Comparison {
        names: comparison.names.clone(),
        headline: headline(comparison),
        metrics: comparison.metrics.iter().map(shown).collect(),
        unlike: unlike.collect(),
        remarks: comparison.remarks.clone(),
    }
    .document();
    document.sections.insert(0, standings(comparison));
    document
}

fn headline(comparison: &Comparison) -> Headline {
    let winner = comparison.winner.as_deref();
    let (word, tone) = headline_words(comparison.outcome, winner, comparison.names.len());
    Headline { word, tone, reason: comparison.reason.clone(), figures: Vec::new() }
}

/// What is read first of a comparison of so many sides.
pub(crate) fn headline_words(
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
        (Outcome::UnlikeConditions, _) => ("UNLIKE CONDITIONS".to_owned(), Tone::Warn),
        (Outcome::TooFewRuns, _) => ("TOO FEW RUNS".to_owned(), Tone::Warn),
        (Outcome::NotToldApart, _) => ("NOT TOLD APART".to_owned(), Tone::Plain),
    }
}

/// How each side stands against its requirement.
fn standings(comparison: &Comparison) -> Section {
    let columns = vec![
        Column::words("side", "side"),
        Column::numbers("runs", "runs"),
        Column::words("verdicts", "verdicts"),
        Column::numbers("least headroom", "headroom_min"),
    ];
    let mut table = Table::new("", columns);
    for (name, standing) in comparison.names.iter().zip(&comparison.standings) {
        table.rows.push(vec![
            Cell::text(name.clone()),
            Cell::count(standing.runs as u64),
            Cell::text(standing.verdicts.clone()),
            Cell::maybe(Unit::Share, standing.headroom_min),
        ]);
    }
    Section::brief("standings", "Against the requirement").with(Block::Table(table))
}

/// The unit of a figure by its key, that of an estimate by the figure that it was made of.
pub fn unit(key: &str) -> Unit {
    match figure(key).map(|figure| figure.counted) {
        Some(Counted::PerSecond) => Unit::Rate,
        Some(Counted::BytesPerSecond) => Unit::Bandwidth,
        Some(Counted::Nanoseconds) => Unit::Latency,
        Some(Counted::Share) => Unit::Share,
        None => Unit::Plain,
    }
}

/// The figure of a key, of whichever workload.
pub(crate) fn figure(key: &str) -> Option<&'static Figure> {
    let key = key.strip_suffix("_cpu_adjusted_estimate").unwrap_or(key);
    metrics::all().find(|figure| figure.key == key)
}
