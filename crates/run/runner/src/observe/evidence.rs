//! Evidence of an observed command: the figures of its result and the observations.

use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::series::Row;
use plimsoll_evidence::{Bundle, BundleWriter};
use plimsoll_import::foreign;
use plimsoll_plan::Plan;

use super::command::CommandRecord;
use super::{NAME, Observation};
use crate::error::RunnerError;

/// Plan text for an observed command. It includes the command, so that a different command counts
/// as a different plan.
pub(super) fn plan_text(observation: &Observation) -> String {
    let path = observation.paths.first().map_or(".".to_owned(), |path| path.display().to_string());
    let quoted = toml_text(&path);
    let command = toml_text(&observation.command.join(" "));
    format!(
        "version = 1\nname = \"observe\"\ndescription = {command}\n[target]\npath = {quoted}\n[workload.matrix]\n[evidence]\nmin_measure = \"60s\"\n"
    )
}

/// Quotes a TOML string. JSON's escapes are a subset of TOML's.
fn toml_text(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// Combines the figures of the result with the observations.
pub(super) fn combine(plan: &Plan, record: &CommandRecord) -> Bundle {
    let ran_ns = record.times.duration_ns;
    let mut evidence = match &record.result {
        Some(result) => result.clone(),
        None => foreign::unfigured(NAME, plan.text(), plan.resolve(), ran_ns),
    };
    let tool_observed = std::mem::replace(&mut evidence.observed, record.observed.clone());
    let observed = &mut evidence.observed;
    // Plimsoll did not generate the load, so only the tool knows these facts.
    observed.generator = tool_observed.generator;
    observed.issuers = tool_observed.issuers;
    observed.workload = tool_observed.workload;
    observed.reported_devices = tool_observed.devices;
    if let Some(command) = &observed.command {
        let moved = command.moved_measured.or(command.moved);
        observed.generator.storage_read_bytes = moved.map(|moved| moved.read_bytes);
        observed.generator.storage_written_bytes = moved.map(|moved| moved.written_bytes);
        let cancelled = command.cancelled_bytes.filter(|_| command.moved_measured.is_none());
        observed.generator.storage_cancelled_bytes = cancelled;
    }
    if let Some(phase) = evidence.run.phases.first_mut() {
        // The measurement is assumed to be the last part of the command.
        phase.start_ns = ran_ns.saturating_sub(phase.duration_ns);
    }
    evidence.series.clone_from(&record.rows);
    evidence
}

/// Writes all files of the bundle except the seal.
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
