//! What is held against a bundle once it was read: the plan as given against the plan as run, and what the ledger
//! says of verdict and report against what lies there.

use std::fs;
use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::MEASURE_NS_MIN;
use plimsoll_evidence::ledger::position::{RecordedRun, RecordedVerdict};
use plimsoll_evidence::run::{Driver, ExperimentKind};
use plimsoll_evidence::seal::sha256_hex;
use plimsoll_import::fio_job::read_job;
use plimsoll_plan::Plan;

use super::Made;

/// Where a plan names a fio job.
const JOB_FIELD: &str = "workload.fio.job";

/// Whether this build wrote a bundle.
pub(super) fn is_own(bundle: &Bundle) -> bool {
    bundle.run.build.as_deref() == Some(plimsoll_report::BUILD)
}

/// In what the plan as given is not the plan as run, in a sentence.
pub(super) fn plan_differs(bundle: &Bundle) -> Option<String> {
    let run = &bundle.run;
    if bundle.plan.sha256_hex().ok().as_ref() != Some(&run.plan_sha256) {
        return Some("resolved.toml is not in the form in which it is written".to_owned());
    }
    // A plan without a name has that of its file.
    let file = format!("{}.toml", bundle.plan.name);
    let no_job = || "the bundle does not hold it".to_owned();
    let job = |_: &str| bundle.job_text.clone().ok_or_else(no_job);
    let plan = match Plan::parse_with(&bundle.plan_text, &file, &job, &read_job) {
        Ok(plan) => plan,
        Err(errors) => {
            let first = errors.errors.first();
            if bundle.job_text.is_none() && first.is_some_and(|error| error.field == JOB_FIELD) {
                // Earlier versions kept the plan alone.
                return Some("the job that plan.toml names is not in the bundle".to_owned());
            }
            let what = first
                .map_or(String::new(), |error| format!(" ({} {})", error.field, error.message));
            return Some(format!("plan.toml is no plan{what}"));
        }
    };
    if plan.job().is_none() && bundle.job_text.is_some() {
        return Some("it has a job that plan.toml does not name".to_owned());
    }
    let mut resolved = bundle.plan.clone();
    if run.driver == Driver::Foreign && resolved.evidence.min_measure_ns == MEASURE_NS_MIN {
        // What is taken over from elsewhere states no such need.
        resolved.evidence.min_measure_ns = plan.resolve().evidence.min_measure_ns;
    }
    let step = run.experiment.as_ref().filter(|place| place.kind == ExperimentKind::Tune);
    let load = step.and_then(|place| place.arm.rsplit(' ').next()?.parse().ok());
    let fields = plan.differs_from(&resolved, load.as_slice())?;
    Some(format!("plan.toml is not the plan that was run: it gives another {fields}"))
}

/// Holds what the ledger says of verdict and report against what the evidence gives, and against itself.
pub(super) fn hold_entered(
    directory: &Path,
    bundle: &Bundle,
    held: &RecordedRun,
    made: &Made,
) -> Result<(), String> {
    let first = entered_by_run(bundle, held);
    if let Some(RecordedVerdict { line, .. }) = first.filter(|first| first.derived != made.hashes())
    {
        return Err(format!(
            "line {line} of the ledger has another verdict.json or report.html than the evidence gives"
        ));
    }
    let on_disk = fs::read(directory.join("verdict.json")).map(|bytes| sha256_hex(&bytes));
    let (Ok(on_disk), Some(says)) = (on_disk, said(directory)) else { return Ok(()) };
    let wrong = |by: &&RecordedVerdict| by.derived.verdict_sha256 == on_disk && by.verdict != says;
    match held.entered.iter().find(wrong) {
        Some(RecordedVerdict { line, verdict, .. }) => Err(format!(
            "line {line} of the ledger says {verdict}, and the verdict.json that it names says {says}"
        )),
        None => Ok(()),
    }
}

/// What the ledger has from the end of a run of this build. A run that could not be judged entered nothing: what
/// stands first then is a later judgement, by whichever build.
pub(super) fn entered_by_run<'a>(
    bundle: &Bundle,
    held: &'a RecordedRun,
) -> Option<&'a RecordedVerdict> {
    held.entered.first().filter(|first| is_own(bundle) && first.line == held.ended_at)
}

/// The verdict that a bundle's `verdict.json` states.
pub(super) fn said(directory: &Path) -> Option<String> {
    let text = fs::read_to_string(directory.join("verdict.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(value["verdict"].as_str()?.chars().filter(|c| c.is_ascii_uppercase()).take(20).collect())
}
