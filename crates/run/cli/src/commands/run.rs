//! `plimsoll run PLAN`: prepares, measures, verifies, judges and reports, as often as the plan
//! requires.

pub mod fleet;
mod replay;
mod show;
mod single_plan;
mod stages;

pub use replay::import as import_trace;
pub use single_plan::run_plan;

use std::path::Path;

use clap::Args;

use super::job;
use super::load_flags::LoadFlags;
use super::load_hosts::LoadHosts;
use super::plan_changes::Changes;
use super::run_options::RunOptions;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;

/// Options of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll run exchange-1000-heavy --path /mnt/db --logs /mnt/log --set \
    phases.measure=10m\n  plimsoll run plan.toml --keep --json\n  plimsoll run job.fio \
    --path /mnt/x --dry-run\n  plimsoll run --path /mnt/x --size 4KiB --reads 70 --depth 32 \
    --for 60s\n  plimsoll run --path /mnt/x --rw randread --bs 4k --iodepth 32 --runtime \
    60\n  plimsoll run --trace app.iolog --path /mnt/x\n  plimsoll run --trace web.csv.gz \
    --pace 2x --model adsf-hybrid\n\n`plimsoll plan list` lists the built-in plans."
)]
pub struct Options {
    /// The plan: a file or a built-in plan, or a fio job (.fio, .job, .ini) whose stages run one
    /// after the other. Without a plan, the flags describe the load.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    hosts: LoadHosts,
    /// Resume a fleet run whose coordinator was killed: wait for hosts that are still running, and
    /// collect the results of hosts that have finished.
    #[arg(long, value_name = "RUN", requires = "fleet", conflicts_with_all = ["plan", "agents"])]
    resume: Option<String>,
    #[command(flatten)]
    replay: replay::Replay,
    #[command(flatten)]
    after: RunOptions,
}

/// Runs a plan.
///
/// # Errors
/// The plan is invalid, or a target cannot be used.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let after = RunOptions { hosts: options.hosts.clone(), ..options.after.clone() };
    if let Some(run) = &options.resume {
        let (mut progress, interrupt) =
            (after.metrics.progress(run, common)?, interrupt::flag_on_signal()?);
        return fleet::resume(run, &after, common, &mut progress, &interrupt);
    }
    if let Some(name) = options.plan.as_deref().filter(|name| job::is_job(name)) {
        let changes = options.load.changes_of_plan(&options.changes)?;
        return stages::of_job(Path::new(name), &changes, &after, common);
    }
    let (plan, meant) = match &options.plan {
        Some(name) => (options.load.changes_of_plan(&options.changes)?.plan(name)?, Vec::new()),
        None if options.replay.has_trace() => {
            options.replay.plan(&options.load, &options.changes)?
        }
        None => {
            let made = options.load.plan("plimsoll run", &options.changes)?;
            (made.plan, made.meanings)
        }
    };
    let mut progress = after.metrics.progress(plan.name(), common)?;
    meant.iter().for_each(|says| progress.say(says));
    let interrupt = interrupt::flag_on_signal()?;
    run_plan(&plan, &after, common, &mut progress, &interrupt)
}
