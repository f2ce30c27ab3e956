//! Runs the stages of a fio job one after the other in one experiment.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_import::fio_job::import_stages;
use plimsoll_report::{stages_document, text};
use plimsoll_runner::preflight;
use plimsoll_runner::run::check_accepted;
use plimsoll_runner::stages::{self, StagePlan};

use super::single_plan::run_plan;
use crate::commands::plan_changes::{Changes, plan_error};
use crate::commands::plan_drivers::for_all;
use crate::commands::run_options::RunOptions;
use crate::commands::{bundle, job};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::StderrProgress;

/// Returns the stages of a job with the field changes applied. A job whose sections all run at the
/// same time has one stage. Reports options that could not be converted.
///
/// # Errors
/// The job is invalid.
fn read(file: &Path, changes: &Changes, common: &Globals) -> Result<Vec<StagePlan>, CliError> {
    let name = job::name(file);
    let imported = import_stages(&job::read(file)?, &name).map_err(|errors| plan_error(&errors))?;
    let mut all = Vec::new();
    for (stage, imported) in &imported {
        job::report(imported, common);
        let plan = changes.apply(&imported.plan)?;
        let resolved = plan.resolve();
        check_accepted(&resolved.evidence.accept_unknown)?;
        // Keep only the number and the section, because the experiment's name already contains the
        // job's name.
        let short = stage.strip_prefix(&name).unwrap_or(stage).trim_start_matches('-');
        all.push(StagePlan { name: short.to_owned(), plan, resolved });
    }
    Ok(all)
}

/// Runs a job: its stages one after the other, or all sections at the same time if the job has only
/// one stage.
///
/// # Errors
/// The job is invalid, a target cannot be used, or a bundle cannot be written.
pub fn of_job(
    file: &Path,
    changes: &Changes,
    after: &RunOptions,
    common: &Globals,
) -> Result<Exit, CliError> {
    let mut progress = after.metrics.progress(&job::name(file), common)?;
    let all = read(file, changes, common)?;
    let interrupt = interrupt::flag_on_signal()?;
    match &all[..] {
        [_] => {
            let plan = changes.plan(&file.to_string_lossy())?;
            run_plan(&plan, after, common, &mut progress, &interrupt)
        }
        _ => carry_out(&job::name(file), &all, after, common, &mut progress, &interrupt),
    }
}

/// Runs the stages of a job one after the other and shows each verdict.
///
/// # Errors
/// A target cannot be used, or a bundle cannot be written.
fn carry_out(
    job: &str,
    all: &[StagePlan],
    after: &RunOptions,
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    if after.verdict_to.is_some() {
        return Err(CliError::usage("--verdict-to: a job with stages has no single verdict")
            .hint("create a plan for each stage: plimsoll plan import JOB --out DIR"));
    }
    after.refuse_with_fleet()?;
    let reported: Vec<_> = all.iter().map(|one| (one.name.clone(), one.resolved.clone())).collect();
    let Some(first) = all.first() else { return Ok(Exit::Ok) };
    let runs = after.preflight(&first.resolved);
    let begins = match after.hosts.uses_fleet() {
        true => after.hosts.check(&first.resolved, &runs, common, progress)?,
        false => progress.check(runs.dry_run, common, |progress| {
            preflight::check_stages(&reported, &runs, progress)
        })?,
    };
    if !begins {
        return Ok(Exit::Ok);
    }
    let named: Vec<_> = all.iter().map(|one| (&*one.name, &one.resolved)).collect();
    let carried = for_all(&named, &after.hosts, &after.sign, progress, interrupt)?;
    let bundles = carried.places.bundles(after.out.as_deref())?;
    let requested = after.config(&first.plan, &first.resolved, &carried, &bundles, interrupt);
    let ran = stages::carry_out(job, all, &requested, progress)?;
    if common.json {
        bundle::print(&bundle::json(&ran.stages)?)?;
    } else {
        let document = stages_document(&ran.stages);
        bundle::print(&text::document(&document, &bundle::style(common)))?;
        bundle::print(&format!("\nreport: {}\n", ran.report.display()))?;
    }
    for directory in &ran.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(ran.exit())
}
