//! The evidence of an observed command: the figures of its result, with what was observed beside them.

use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::series::Row;
use plimsoll_evidence::{Bundle, BundleWriter};
use plimsoll_import::foreign;
use plimsoll_plan::Plan;

use super::command::Watched;
use super::{NAME, Observation};
use crate::error::RunnerError;

/// What stands for a plan. It names the command: another job is another plan, and no earlier run of this one.
pub(super) fn plan_text(observation: &Observation) -> String {
    let path = observation.paths.first().map_or(".".to_owned(), |path| path.display().to_string());
    let quoted = toml_text(&path);
    let command = toml_text(&observation.command.join(" "));
    format!(
        "version = 1\nname = \"observe\"\ndescription = {command}\n[target]\npath = {quoted}\n[workload.matrix]\n[evidence]\nmin_measure = \"60s\"\n"
    )
}

/// A TOML basic string; JSON's escapes are a subset of TOML's.
fn toml_text(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The figures of the result, with what was observed beside them.
pub(super) fn of(plan: &Plan, watched: &Watched) -> Bundle {
    let ran_ns = watched.ran.duration_ns;
    let mut evidence = match &watched.said {
        Some(said) => said.clone(),
        None => foreign::unfigured(NAME, plan.text(), plan.resolve(), ran_ns),
    };
    let said = std::mem::replace(&mut evidence.observed, watched.observed.clone());
    let observed = &mut evidence.observed;
    // What only the tool knows of itself; our own process was not the generator.
    observed.generator = said.generator;
    observed.issuers = said.issuers;
    observed.workload = said.workload;
    observed.reported_devices = said.devices;
    if let Some(command) = &observed.command {
        let moved = command.moved_measured.or(command.moved);
        observed.generator.storage_read_bytes = moved.map(|moved| moved.read_bytes);
        observed.generator.storage_written_bytes = moved.map(|moved| moved.written_bytes);
        let taken_back = command.cancelled_bytes.filter(|_| command.moved_measured.is_none());
        observed.generator.storage_cancelled_bytes = taken_back;
    }
    if let Some(phase) = evidence.run.phases.first_mut() {
        // A tool prepares first and measures last.
        phase.start_ns = ran_ns.saturating_sub(phase.duration_ns);
    }
    evidence.series.clone_from(&watched.rows);
    evidence
}

/// Writes all but the seal.
pub(super) fn write(
    writer: &BundleWriter,
    evidence: &Bundle,
    environment: &Environment,
    rows: &[Row],
) -> Result<(), RunnerError> {
    let run = &evidence.run;
    writer.plan(&evidence.plan_text, None, &evidence.plan)?;
    writer.environment(environment)?;
    let phase = run.measure();
    let intervals = evidence.latency.iter().map(|(tag, histogram)| Interval {
        tag: tag.clone(),
        start_ns: phase.map_or(0, |phase| phase.start_ns),
        duration_ns: phase.map_or(0, |phase| phase.duration_ns),
        histogram: histogram.into(),
    });
    let intervals: Vec<Interval> = intervals.collect();
    writer.latency(run.started_unix_ns, &intervals, &run.phases)?;
    writer.series(rows)?;
    writer.observed(&evidence.observed)?;
    writer.run(run)?;
    Ok(())
}
