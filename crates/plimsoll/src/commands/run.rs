//! `plimsoll run PLAN`: prepare, measure, verify, judge, report; as often as the plan says.

pub mod fleet;
mod line;
mod made;
mod replay;
mod show;
mod stages;

pub use made::run_plan;
pub use replay::import as import_trace;

use std::path::Path;

use clap::Args;

use super::after::After;
use super::chosen::Changes;
use super::job;
use super::load_hosts::LoadHosts;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;

/// Options of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll run exchange-1000-heavy --path /mnt/db --logs /mnt/log --set \
    phases.measure=10m\n  plimsoll run plan.toml --keep --json\n  plimsoll run job.fio --path /mnt/x --dry-run\n  plimsoll run --path /mnt/x --size 4KiB \
    --reads 70 --depth 32 --for 60s\n  plimsoll run --path /mnt/x --rw randread --bs 4k --iodepth 32 --runtime 60\n  \
    plimsoll run --trace app.iolog --path /mnt/x\n  plimsoll run --trace web.csv.gz --pace 2x --model adsf-hybrid\n\n\
    `plimsoll plan list` lists the plans that are built in."
)]
pub struct Options {
    /// The plan: a file, or one that is built in; or a fio job (.fio, .job, .ini), whose stages run one after the
    /// other. Without one, the flags say what is run.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    line: line::Line,
    #[command(flatten)]
    hosts: LoadHosts,
    /// Take a fleet's run up again whose `plimsoll run` was killed: what goes on is led to its end, what has ended is
    /// fetched from the hosts and judged.
    #[arg(long, value_name = "RUN", requires = "fleet", conflicts_with_all = ["plan", "agents"])]
    resume: Option<String>,
    #[command(flatten)]
    replay: replay::Replay,
    #[command(flatten)]
    after: After,
}

/// Runs a plan.
///
/// # Errors
/// A plan that is wrong, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let after = After { hosts: options.hosts.clone(), ..options.after.clone() };
    if let Some(run) = &options.resume {
        let (mut progress, interrupt) =
            (after.metrics.progress(run, common)?, interrupt::flag_on_signal()?);
        return fleet::resume(run, &after, common, &mut progress, &interrupt);
    }
    if let Some(name) = options.plan.as_deref().filter(|name| job::is_one(name)) {
        return stages::of_job(Path::new(name), &options.changes, &after, common);
    }
    let (plan, meant) = match &options.plan {
        Some(name) => (options.changes.plan(name)?, Vec::new()),
        None if options.replay.is_asked() => {
            options.replay.plan(&options.line, &options.changes)?
        }
        None => options.line.plan(&options.changes)?,
    };
    let mut progress = after.metrics.progress(plan.name(), common)?;
    meant.iter().for_each(|says| progress.say(says));
    let interrupt = interrupt::flag_on_signal()?;
    run_plan(&plan, &after, common, &mut progress, &interrupt)
}
