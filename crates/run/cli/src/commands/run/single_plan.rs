//! Runs a plan on one target as often as it says.

use std::sync::atomic::AtomicBool;

use plimsoll_plan::Plan;
use plimsoll_runner::repeat;
use plimsoll_runner::run_request::RunConfig;
use plimsoll_runner::search::{ThreadSearch, resolve_threads};

use super::show::show;
use crate::commands::arms;
use crate::commands::run_options::RunOptions;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;

/// Runs a plan and shows its verdict, or the summary of its runs.
///
/// # Errors
/// An unusable target, or a bundle that cannot be written.
pub fn run_plan(
    plan: &Plan,
    after: &RunOptions,
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let resolved = plan.resolve();
    if resolved.targets.len() > 1 {
        if after.verdict_to.is_some() {
            return Err(CliError::usage(
                "--verdict-to: a plan with several targets has no single verdict",
            )
            .hint("use a plan with one target"));
        }
        return arms::run_arms(plan, after, &[], common, progress, interrupt);
    }
    after.refuse_with_fleet()?;
    let runs = after.preflight(&resolved);
    if !after.hosts.check(&resolved, &runs, progress)? {
        return Ok(Exit::Ok);
    }
    let carried = after.hosts.select(&resolved, &after.sign, progress, interrupt)?;
    let places = &carried.places;
    let requested = RunConfig {
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
    let with_threads = match resolve_threads(&requested, progress)? {
        ThreadSearch::Known(plan) => plan,
        ThreadSearch::None(exit) => return Ok(exit),
    };
    let repeated =
        repeat::carry_out(&RunConfig { resolved: &with_threads, ..requested }, progress)?;
    show(&repeated, common)?;
    after.write_verdict(&repeated)?;
    for directory in repeated.kept() {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(repeated.exit())
}
