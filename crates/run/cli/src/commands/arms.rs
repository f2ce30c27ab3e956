//! Runs a plan alternately on its targets and compares the results.

use std::sync::atomic::AtomicBool;

use plimsoll_judge::compare::Comparison;
use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_plan::Plan;
use plimsoll_runner::arms::{self, EarlierComparison};
use plimsoll_runner::compare::Exemptions;
use plimsoll_runner::finished_run::worst;

use super::bundle;
use super::run_options::RunOptions;
use super::sides;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;

/// Runs the plan on every target as often as it requires, and compares the results. `accept` lists
/// the accepted differences.
///
/// # Errors
/// The errors of [`run_arms_for`], or the plan has too few runs.
pub fn run_arms(
    plan: &Plan,
    after: &RunOptions,
    accept: &[String],
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    enough_runs(plan)?;
    let taken = Exemptions { accept, ..Exemptions::default() };
    let show = |compared: &Comparison| -> Result<Exit, CliError> {
        sides::show(compared, common)?;
        Ok(sides::exit_of(compared))
    };
    let earlier = EarlierComparison::Ignore;
    run_arms_for(plan, after, taken, earlier, &show, common, progress, interrupt)
}

/// Rejects a plan that has too few runs per target, before the first run starts.
///
/// # Errors
/// The plan has too few runs. The error contains the required number.
pub fn enough_runs(plan: &Plan) -> Result<(), CliError> {
    let runs = plan.resolve().repeat.runs as usize;
    if runs >= RUNS_MIN {
        return Ok(());
    }
    let name = plan.source_name();
    let often = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
    let says = format!(
        "{name} runs each target {often}, but with fewer than {RUNS_MIN} runs per target no \
         difference is significant"
    );
    Err(CliError::usage(says)
        .hint(format!(
            "use at least {RUNS_MIN} runs per target: --runs {RUNS_MIN}, or `[repeat] \
            runs = {RUNS_MIN}` in the plan"
        ))
        .hint(
            "`plimsoll compare PLAN --few` runs the plan anyway: the runs still show whether each \
             target meets a requirement",
        ))
}

/// Like [`run_arms`], but accepts any number of runs and a list of compared factors, and can resume
/// an interrupted comparison. `show` prints the comparison and returns its exit code.
///
/// # Errors
/// A target is unusable, or a bundle cannot be written.
#[allow(clippy::too_many_arguments)]
pub fn run_arms_for(
    plan: &Plan,
    after: &RunOptions,
    taken: Exemptions<'_>,
    earlier: EarlierComparison,
    show: &dyn Fn(&Comparison) -> Result<Exit, CliError>,
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let resolved = plan.resolve();
    after.refuse_with_fleet()?;
    let runs = after.preflight(&resolved);
    if !after.hosts.check(&resolved, &runs, common, progress)? {
        return Ok(Exit::Ok);
    }
    let carried = after.hosts.select(&resolved, &after.sign, progress, interrupt)?;
    let bundles = carried.places.bundles(after.out.as_deref())?;
    let requested = after.config(plan, &resolved, &carried, &bundles, interrupt);
    let compared = arms::carry_out(&requested, taken.accept, taken.factors, earlier, progress)?;
    let exit = show(&compared.comparison)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", compared.report.display()))?;
    }
    for directory in &compared.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    // The exit code of a failed run has priority over that of the comparison. A FAIL of one side is
    // not a failed run.
    Ok(match worst(&compared.finished) {
        exit @ (Exit::Defect | Exit::Interrupted | Exit::Corruption | Exit::Environment) => exit,
        _ => exit,
    })
}
