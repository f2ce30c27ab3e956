//! Report of a comparison.

use std::collections::BTreeSet;

use plimsoll_judge::compare::{Comparison, Divergence, Explanation, Metric, Outcome};
use plimsoll_judge::metrics::{self, Figure, FigureUnit};

use crate::document::{Block, Document, Headline, Section};
use crate::number::{Letters, Unit, elapsed};
use crate::places;
use crate::run::{headroom, sentence};
use crate::study::ComparisonDrawing;
use crate::table::{Cell, Column, Table, Tone};

/// Returns the report of a comparison: conclusion, requirement, figures and differing conditions.
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

/// Formats values of a condition in the unit at the end of its name: `measure_ns` 600000000000 is
/// 10 min. Values that would look equal after formatting stay unformatted.
pub(crate) fn with_units(name: &str, values: &[String]) -> Vec<String> {
    let unit = match Unit::of_name(name).0 {
        Unit::Plain | Unit::Share => return values.to_vec(),
        unit => unit,
    };
    let one = |value: &str| match value.parse::<f64>() {
        Ok(ns) if unit == Unit::Latency && ns >= 60e9 => Unit::Elapsed.show(ns, Letters::Unicode),
        Ok(number) => unit.show(number, Letters::Unicode),
        Err(_) => value.to_owned(),
    };
    // Several values of one side are joined by "and".
    let all = |value: &String| value.split(" and ").map(one).collect::<Vec<_>>().join(" and ");
    let shown: Vec<String> = values.iter().map(all).collect();
    let tells = |values: &[String]| values.iter().collect::<BTreeSet<_>>().len();
    if tells(&shown) == tells(values) { shown } else { values.to_vec() }
}

/// Returns plans, date, host, file system, kernel and device of all runs.
fn identity(comparison: &Comparison) -> Vec<(String, String)> {
    let measured = &comparison.runs;
    let mut pairs = Vec::new();
    let works =
        places::listed(measured.iter().map(|run| run.does.clone()).filter(|d| !d.is_empty()));
    if !works.is_empty() {
        let lengths = measured.iter().map(|run| elapsed(run.place.measured_ns as f64));
        let lengths = places::listed(lengths);
        pairs.push(("workload".to_owned(), format!("{works}; each run measured for {lengths}")));
    }
    if !measured.is_empty() {
        let plans = places::listed(measured.iter().map(|run| run.plan.clone()));
        pairs.push(("plan".to_owned(), plans));
    }
    pairs.extend(places::facts(measured.iter().map(|run| &run.place)));
    pairs
}

/// Returns true if the difference of a figure is significant.
pub(crate) fn is_decided(comparison: &Comparison, metric: &Metric) -> bool {
    let decides = !matches!(
        comparison.outcome,
        Outcome::UnlikeConditions | Outcome::NotBelieved | Outcome::NotShown | Outcome::TooFewRuns
    );
    decides && metric.sides.iter().any(|side| side.significant == Some(true))
}

/// Describes the point at which the sides diverge and the parts of their difference.
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
            Column::of(Unit::Latency, "of an operation", "ns_per_operation"),
            Column::of(Unit::Share, "of the difference", "share"),
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
            "the mean operation of the second side takes {shown} {more} than that of the first; a \
             row that explains a share of this difference is not necessarily its cause"
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

/// Compares each side with its requirement, or lists the runs of sides without one.
fn standings(comparison: &Comparison) -> Section {
    let mut columns = vec![
        Column::words("side", "side"),
        Column::numbers("runs", "runs"),
        Column::words("verdicts", "verdicts"),
    ];
    // If its plan has no requirement, a run is MEASURED or fails by a rule.
    let required = comparison
        .requirement_results
        .iter()
        .any(|result| result.passed + result.failed > 0 || result.headroom_min.is_some());
    if required {
        columns.push(Column::numbers("least headroom", "headroom_min"));
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

/// Returns the unit of a figure by its key. An estimate has the unit of its figure.
pub fn unit(key: &str) -> Unit {
    match figure(key).map(|figure| figure.unit) {
        Some(FigureUnit::PerSecond) => Unit::Rate,
        Some(FigureUnit::BytesPerSecond) => Unit::Bandwidth,
        Some(FigureUnit::Nanoseconds) => Unit::Latency,
        Some(FigureUnit::Share) => Unit::Share,
        // A latency of a class, of all hosts.
        None if key.contains("latency_ns_") => Unit::Latency,
        None => Unit::Plain,
    }
}

/// Returns the figure with a key, of any workload.
pub(crate) fn figure(key: &str) -> Option<&'static Figure> {
    let key = key.strip_suffix("_cpu_adjusted_estimate").unwrap_or(key);
    metrics::all().find(|figure| figure.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_unit_that_their_name_ends_with() {
        let shown = |name: &str, values: &[&str]| {
            with_units(name, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            shown("plan.phases.measure_ns", &["600000000000", "30000000000"]),
            ["10 min", "30.0 s"]
        );
        assert_eq!(shown("plan.size_bytes", &["4096", "null"]), ["4 KiB", "null"]);
        assert_eq!(
            shown("plan.rate_per_s", &["500", "1000 and 2000"]),
            ["500.0/s", "1,000/s and 2,000/s"]
        );
        assert_eq!(shown("kernel", &["6.1", "6.18"]), ["6.1", "6.18"]);
        let close = ["1000000000001", "1000000000002"];
        assert_eq!(shown("plan.x_ns", &close), close, "what differs must not read alike");
    }
}
