//! Several targets of one plan, run in turns and compared.

use std::sync::atomic::AtomicBool;

use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_plan::Plan;
use plimsoll_runner::arms;
use plimsoll_runner::compare::AcceptedDifferences;
use plimsoll_runner::finished_run::worst;
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::run_request::RunConfig;

use super::after::After;
use super::bundle;
use super::sides::{exit_of, show};
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;

/// Runs every target of a plan as often as it says, and compares them; differences that are named in `accept`
/// are accepted.
///
/// # Errors
/// As [`run_arms_for`], and too few runs to tell a difference by.
pub fn run_arms(
    plan: &Plan,
    after: &After,
    accept: &[String],
    common: &Common,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    enough_runs(plan)?;
    let taken = AcceptedDifferences { accept, ..AcceptedDifferences::default() };
    run_arms_for(plan, after, taken, common, progress, interrupt)
}

/// Refuses a plan that runs its targets too seldom to tell them apart, before any time is spent on it.
///
/// # Errors
/// The number of runs that it needs.
pub fn enough_runs(plan: &Plan) -> Result<(), CliError> {
    let runs = plan.resolve().repeat.runs as usize;
    if runs >= RUNS_MIN {
        return Ok(());
    }
    let name = plan.source_name();
    let often = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
    let says = format!(
        "{name} runs each target {often}: no difference can be told from noise by fewer than {RUNS_MIN} runs of each"
    );
    Err(CliError::usage(says)
        .hint(format!("set `[repeat] runs = {RUNS_MIN}`, or more: --set repeat.runs={RUNS_MIN}"))
        .hint(
            "`plimsoll compare PLAN --few` runs it all the same: verdicts against a requirement need no more",
        ))
}

/// As [`run_arms`], however few the runs, with what is asked about.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn run_arms_for(
    plan: &Plan,
    after: &After,
    taken: AcceptedDifferences<'_>,
    common: &Common,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let resolved = plan.resolve();
    after.refuse_with_fleet()?;
    let runs = Preflight::runs(&resolved, after.yes, after.dry_run);
    if !after.hosts.begins(&resolved, &runs, progress)? {
        return Ok(Exit::Ok);
    }
    let carried = after.hosts.carried(&resolved, &after.sign, progress, interrupt)?;
    let places = &carried.places;
    let asked = RunConfig {
        plan,
        resolved: &resolved,
        keep: after.keep,
        witness: after.witness.as_deref(),
        destroy: &after.destroy,
        bundles: &places.bundles(after.out.as_deref())?,
        places,
        interrupt,
        driver: &*carried.driver,
    };
    let compared = arms::carry_out(&asked, taken.accept, taken.factors, progress)?;
    show(&compared.comparison, common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", compared.report.display()))?;
    }
    for directory in &compared.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    // What went wrong in a run comes before what the comparison says; a FAIL of one side is its result.
    Ok(match worst(&compared.finished) {
        exit @ (Exit::Defect | Exit::Interrupted | Exit::Corruption | Exit::Environment) => exit,
        _ => exit_of(&compared.comparison),
    })
}
