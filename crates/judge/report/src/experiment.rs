//! Report of several runs of one plan.

use plimsoll_judge::experiment::{Experiment, Metric};
use plimsoll_judge::finding::Outcome;

use crate::document::{Block, Document, Headline, Section};
use crate::number::Unit;
use crate::run::findings;
use crate::study::{figure, unit};
use crate::table::{Cell, Column, Table, Tone};
use crate::text;

/// Returns the report for a terminal: the verdicts of all runs, and the mean, interval and spread
/// of each figure.
pub fn experiment(experiment: &Experiment, style: &text::Style) -> String {
    text::document(&experiment_document(experiment), style)
}

/// Returns the report as a document.
pub fn experiment_document(experiment: &Experiment) -> Document {
    let runs = experiment.runs.len();
    let mut verdicts: Vec<&str> = experiment.runs.iter().map(|run| run.verdict.label()).collect();
    verdicts.dedup();
    let failed = experiment.findings.iter().find(|finding| finding.outcome == Outcome::Fail);
    let (word, tone) = match (failed, &verdicts[..]) {
        (Some(_), _) => ("INVALID".to_owned(), Tone::Bad),
        (None, [one]) => ((*one).to_owned(), Tone::Plain),
        _ => ("MIXED".to_owned(), Tone::Plain),
    };
    let reason = match (failed, runs) {
        (Some(finding), 1) => format!("1 run, and {}.", finding.says),
        (Some(finding), _) => format!("{runs} runs, and {}.", finding.says),
        (None, 1) => "1 run of the plan: the spread between runs is unknown.".to_owned(),
        (None, _) => {
            format!("{runs} runs of the same plan. The first figure is the mean, not the best run.")
        }
    };
    Document {
        title: experiment.name.clone(),
        headline: Headline { word, tone, reason, figures: Vec::new() },
        sections: vec![
            figures(experiment),
            findings::list(
                &experiment.findings,
                "The rules that compare several runs have no findings.",
            ),
            runs_section(experiment),
        ],
        ..Document::default()
    }
}

fn figures(experiment: &Experiment) -> Section {
    let columns = vec![
        Column::words("figure", "figure"),
        Column::numbers("mean", "mean"),
        Column::numbers("95 % interval from", "interval_low"),
        Column::numbers("to", "interval_high"),
        Column::numbers("spread", "spread"),
    ];
    let mut table = Table::new("Figures of all runs", columns);
    for metric in &experiment.metrics {
        let (name, unit) = name_and_unit(metric);
        let [low, high] = metric.interval.map_or([None; 2], |ends| ends.map(Some));
        table.rows.push(vec![
            Cell::text(name),
            Cell::maybe(unit, metric.mean),
            Cell::maybe(unit, low),
            Cell::maybe(unit, high),
            Cell::maybe(Unit::Share, metric.spread),
        ]);
    }
    Section::brief("figures", "Figures").with(Block::Table(table))
}

fn runs_section(experiment: &Experiment) -> Section {
    let columns = vec![
        Column::words("run", "run"),
        Column::words("verdict", "verdict"),
        Column::numbers("achieved I/Os", "achieved_iops_per_s"),
    ];
    let mut table = Table::new("Runs", columns);
    for (index, run) in experiment.runs.iter().enumerate() {
        let achieved = experiment.metrics.iter().find(|m| m.name == "achieved_iops_per_s");
        let value = achieved.and_then(|m| m.values.get(index).copied().flatten());
        table.rows.push(vec![
            Cell::text(run.run_id.as_str()),
            Cell::text(run.verdict.label()),
            Cell::maybe(Unit::Rate, value),
        ]);
    }
    Section::brief("runs", "Runs").with(Block::Table(table))
}

/// Returns the display name and unit of a metric.
fn name_and_unit(metric: &Metric) -> (&str, Unit) {
    let name = figure(&metric.name).map_or(metric.name.as_str(), |figure| figure.name);
    (name, unit(&metric.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_judge::VerdictKind;
    use plimsoll_judge::experiment::ExperimentRun;
    use plimsoll_judge::finding::Finding;

    #[test]
    fn mean_interval_and_spread_stand_in_the_table_and_what_is_missing_is_not_zero() {
        let run =
            |id: &str, verdict| ExperimentRun { run_id: id.into(), verdict, reason: String::new() };
        let metric = |name: &str, mean, interval, spread| Metric {
            name: name.into(),
            higher_is_better: true,
            values: vec![Some(100.0), Some(110.0)],
            mean,
            interval,
            spread,
        };
        let experiment = Experiment {
            name: "twice".into(),
            runs: vec![run("a", VerdictKind::Pass), run("b", VerdictKind::Fail)],
            metrics: vec![
                metric("achieved_iops_per_s", Some(105.0), Some([41.5, 168.5]), Some(0.095)),
                metric("db_read_latency_ns_avg", None, None, None),
            ],
            findings: vec![Finding::new("spread-between-runs", Outcome::Unknown, "far apart")],
            passed: vec!["plan-changed".into()],
        };
        let text = super::experiment(&experiment, &text::Style::default());
        for part in ["MIXED", "105.0/s", "41.5", "168.5", "9.5", "n/a", "PASS", "FAIL", "Far apart"]
        {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let changed = Finding::new("plan-changed", Outcome::Fail, "the plan changed");
        let experiment = Experiment { findings: vec![changed], ..experiment };
        let text = super::experiment(&experiment, &text::Style::default());
        assert!(text.starts_with("INVALID") && text.contains("the plan changed"), "{text}");
    }
}
