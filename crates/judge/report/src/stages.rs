//! Report of the stages of a job.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::stages::{Stage, Stages};

use crate::document::{Block, Document, Headline, Section};
use crate::number::Unit;
use crate::run::{sentence, verdict_tone};
use crate::table::{Cell, Column, Table, Tone};

/// Returns the report. It begins with the worst verdict; then each stage follows, with its figures
/// and the reason for its verdict.
pub fn stages_document(stages: &Stages) -> Document {
    let worst = stages.worst();
    Document {
        title: stages.name.clone(),
        headline: Headline {
            word: worst.map_or("NOT RUN", VerdictKind::label).to_owned(),
            tone: worst.map_or(Tone::Plain, verdict_tone),
            reason: reason(stages),
            figures: Vec::new(),
        },
        sections: vec![Section::brief("stages", "Stages").with(Block::Table(table(stages)))],
        ..Document::default()
    }
}

/// Returns the stages as CSV, in base units.
pub fn stages_csv(stages: &Stages) -> String {
    table(stages).csv()
}

fn reason(stages: &Stages) -> String {
    let (run, planned) = (stages.stages.len(), stages.planned.len().max(stages.stages.len()));
    let mut text = match run == planned {
        true => format!("{planned} stages ran one after the other."),
        false => format!(
            "{run} of {planned} stages ran, one after the other. The other stages \
            did not run."
        ),
    };
    let kinds = [
        VerdictKind::Invalid,
        VerdictKind::Fail,
        VerdictKind::Inconclusive,
        VerdictKind::Pass,
        VerdictKind::Measured,
    ];
    for kind in kinds {
        let names: Vec<&str> = stages.with(kind).map(|stage| stage.name.as_str()).collect();
        if !names.is_empty() {
            text.push_str(&format!(" {}: {}.", kind.label(), names.join(", ")));
        }
    }
    text
}

fn table(stages: &Stages) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("stage", "stage"),
            Column::words("verdict", "verdict"),
            Column::numbers("operations", "rate_per_s"),
            Column::numbers("bandwidth", "bandwidth_bytes_per_s"),
            Column::numbers("latency, average", "latency_ns_avg"),
            Column::numbers("p99", "latency_ns_p99").rank(1),
            Column::numbers("measured for", "measured_ns").rank(1),
            Column::words("workload", "does").rank(1),
            Column::words("run", "run_id").rank(2),
            Column::remarks("why", "reason"),
        ],
    );
    table.rows = stages.stages.iter().map(row).collect();
    let missing = stages.planned.iter().skip(stages.stages.len());
    table.rows.extend(missing.map(|name| {
        let mut cells = vec![Cell::text(name.clone()), Cell::text("not run")];
        cells.resize(table.columns.len(), Cell::empty());
        cells
    }));
    table.note =
        "Each stage created its own data and did not use the data of earlier stages.".to_owned();
    table
}

fn row(stage: &Stage) -> Vec<Cell> {
    let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
    vec![
        Cell::text(stage.name.clone()),
        Cell::text(stage.verdict.label()).tone(verdict_tone(stage.verdict)),
        Cell::maybe(Unit::Rate, stage.rate_per_s),
        Cell::maybe(Unit::Bandwidth, stage.bandwidth_bytes_per_s),
        Cell::maybe(Unit::Latency, ns(stage.latency_ns_avg)),
        Cell::maybe(Unit::Latency, ns(stage.latency_ns_p99)),
        Cell::maybe(Unit::Elapsed, ns(stage.measured_ns)),
        Cell::text(stage.does.clone()),
        Cell::text(stage.run_id.clone()),
        Cell::text(sentence(&stage.reason)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn stages_that_were_not_run_are_no_figures_and_the_worst_verdict_stands_first() {
        let stage = |name: &str, verdict, rate_per_s| Stage {
            name: name.to_owned(),
            does: "random 4 KiB".to_owned(),
            run_id: format!("run-{name}"),
            verdict,
            reason: format!("{name} says why"),
            measured_ns: Some(60_000_000_000),
            rate_per_s,
            bandwidth_bytes_per_s: None,
            latency_ns_avg: None,
            latency_ns_p99: None,
        };
        let stages = Stages {
            name: "job".to_owned(),
            planned: ["fill", "read", "write"].map(str::to_owned).to_vec(),
            stages: vec![
                stage("fill", VerdictKind::Measured, Some(1200.0)),
                stage("read", VerdictKind::Invalid, None),
            ],
        };
        let style = text::Style { width: 140, ..text::Style::default() };
        let shown = text::document(&stages_document(&stages), &style);
        assert!(shown.starts_with("INVALID"), "{shown}");
        for part in ["2 of 3 stages", "INVALID: read.", "1,200", "n/a", "not run", "Fill says why"]
        {
            assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
        }
    }
}
