//! Checks of a bundle after it was read. They compare the plan as written with the plan as run, and
//! the verdict and the hashes in the ledger with the files.

use std::fs;
use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::MEASURE_NS_MIN;
use plimsoll_evidence::ledger::position::{RecordedRun, RecordedVerdict};
use plimsoll_evidence::run::{Driver, ExperimentKind};
use plimsoll_evidence::seal::sha256_hex;
use plimsoll_import::fio_job::read_job;
use plimsoll_plan::Plan;

use super::DerivedFiles;

/// Plan field that names a fio job.
const JOB_FIELD: &str = "workload.fio.job";

/// Returns true if this build wrote the bundle.
pub(super) fn is_own(bundle: &Bundle) -> bool {
    bundle.run.build.as_deref() == Some(plimsoll_report::BUILD)
}

/// Describes how the plan as written differs from the plan as run; `None` if they match.
pub(super) fn plan_difference(bundle: &Bundle) -> Option<String> {
    let run = &bundle.run;
    if bundle.plan.sha256_hex().ok().as_ref() != Some(&run.plan_sha256) {
        return Some("resolved.toml is not in the format that Plimsoll writes".to_owned());
    }
    // A plan without a name is named after its file.
    let file = format!("{}.toml", bundle.plan.name);
    let no_job = || "the job is not in the bundle".to_owned();
    let job = |_: &str| bundle.job_text.clone().ok_or_else(no_job);
    let plan = match Plan::parse_with(&bundle.plan_text, &file, &job, &read_job) {
        Ok(plan) => plan,
        Err(errors) => {
            let first = errors.errors.first();
            if bundle.job_text.is_none() && first.is_some_and(|error| error.field == JOB_FIELD) {
                // Earlier versions stored the plan without the job.
                return Some("the bundle lacks the fio job to which plan.toml refers".to_owned());
            }
            let what = first
                .map_or(String::new(), |error| format!(" ({} {})", error.field, error.message));
            return Some(format!("plan.toml is not a valid plan{what}"));
        }
    };
    if plan.job().is_none() && bundle.job_text.is_some() {
        return Some("the bundle has a fio job to which plan.toml does not refer".to_owned());
    }
    let mut resolved = bundle.plan.clone();
    if run.driver == Driver::Foreign && resolved.evidence.min_measure_ns == MEASURE_NS_MIN {
        // Imported results do not state a minimum duration.
        resolved.evidence.min_measure_ns = plan.resolve().evidence.min_measure_ns;
    }
    let step = run.experiment.as_ref().filter(|place| place.kind == ExperimentKind::Tune);
    let load = step.and_then(|place| place.arm.rsplit(' ').next()?.parse().ok());
    let fields = plan.differs_from(&resolved, load.as_slice())?;
    Some(format!("plan.toml is not the plan that was run: the values of {fields} differ"))
}

/// Compares the verdict and the hashes in the ledger with the evidence and with the files.
pub(super) fn check_ledger_entry(
    directory: &Path,
    bundle: &Bundle,
    held: &RecordedRun,
    files: &DerivedFiles,
) -> Result<(), String> {
    let first = entry_of_run(bundle, held);
    if let Some(RecordedVerdict { line, .. }) =
        first.filter(|first| first.derived != files.hashes())
    {
        return Err(format!(
            "the hashes in line {line} of the ledger do not match the verdict.json and report.html \
             that result from the evidence"
        ));
    }
    let on_disk = fs::read(directory.join("verdict.json")).map(|bytes| sha256_hex(&bytes));
    let (Ok(on_disk), Some(says)) = (on_disk, stated_verdict(directory)) else { return Ok(()) };
    let wrong = |by: &&RecordedVerdict| by.derived.verdict_sha256 == on_disk && by.verdict != says;
    match held.entered.iter().find(wrong) {
        Some(RecordedVerdict { line, verdict, .. }) => Err(format!(
            "line {line} of the ledger records the verdict {verdict}, but the verdict.json with the \
             hash in this line states {says}"
        )),
        None => Ok(()),
    }
}

/// Returns the verdict that was recorded in the ledger when a run of this build ended. `None` if
/// the run ended without a verdict: in this case, the first verdict in the ledger is from a later
/// judgement.
pub(super) fn entry_of_run<'a>(
    bundle: &Bundle,
    held: &'a RecordedRun,
) -> Option<&'a RecordedVerdict> {
    held.entered.first().filter(|first| is_own(bundle) && first.line == held.ended_at)
}

/// Returns the verdict stated in `verdict.json`.
pub(super) fn stated_verdict(directory: &Path) -> Option<String> {
    let text = fs::read_to_string(directory.join("verdict.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(value["verdict"].as_str()?.chars().filter(|c| c.is_ascii_uppercase()).take(20).collect())
}
