//! `plimsoll sweep`: measures all combinations of I/O size, read share, pattern and depth.

mod flags;
mod show;

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::run_request::RunConfig;
use plimsoll_runner::sweep::{self, EarlierSweep, SweepProgress};

use self::flags::Flags;
use self::show::{Format, show};
use super::load_flags::{LoadFlags, LoadPlan};
use super::load_hosts::LoadHosts;
use super::plan_changes::Changes;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll sweep matrix.toml --path /mnt/x --set phases.measure=1m\n  \
        plimsoll sweep --path /mnt/x --size 4KiB..128KiB --reads 100,75,50,25,0\n  plimsoll sweep \
        --nfs nfs://10.0.0.5/e1 --nfs nfs://10.0.0.5/e2 --metadata 5 --depth 4,1 --quick\n\nAll \
        points use the same data. Each point is a run with its own bundle.\nTo resume, repeat the \
        command."
)]
pub struct Options {
    /// The plan: a file or a built-in plan. Without a plan, the flags describe the sweep.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Start a new sweep instead of resuming an interrupted sweep of the same plan.
    #[arg(long, alias = "anew")]
    restart: bool,
    /// List the points of the sweep and its duration, and check every target and server, but
    /// measure nothing.
    #[arg(long)]
    dry_run: bool,
    /// Accept a sweep that measures for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Only show the results of the latest sweep of this plan. Nothing is measured.
    #[arg(long, alias = "told", conflicts_with_all = ["restart", "dry_run"])]
    show_latest: bool,
    /// Keep the data after the last measurement.
    #[arg(long)]
    keep: bool,
    /// Allow this block device (full path) to be overwritten.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Store the experiment in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    metrics: Metrics,
    /// Format of the output.
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    hosts: LoadHosts,
}

/// Runs the sweep.
///
/// # Errors
/// The plan or a flag is invalid, or a target cannot be used.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let (name, load) = (options.plan.as_deref(), &options.load);
    let LoadPlan { plan, meanings } = options.flags.plan(name, load, &options.changes)?;
    let (resolved, interrupt) = (plan.resolve(), interrupt::flag_on_signal()?);
    let points = sweep::points(&resolved)?;
    let mut progress = options.metrics.progress(plan.name(), common)?;
    meanings.iter().for_each(|says| progress.say(says));
    let carried = options.hosts.select(&resolved, &options.sign, &mut progress, &interrupt)?;
    let bundles = carried.places.bundles(options.out.as_deref())?;
    let earlier = EarlierSweep::from_flags(options.restart, options.show_latest);
    let mut state = SweepProgress::begin(&resolved, &points, &bundles, &carried.places, earlier)?;
    if options.show_latest {
        state.require_points(&bundles)?;
        return show(&state, options.format, common).map(|()| state.exit());
    }
    progress.say(&state.estimate(&resolved, &points));
    let points_left = Preflight {
        measurements: state.remaining(&points),
        unit: "point",
        data_sets: 1,
        listing: state.list_points(&points),
        ..Preflight::runs(&resolved, options.yes, options.dry_run)
            .with_data(&options.destroy, options.keep)
    };
    if !options.hosts.check(&resolved, &points_left, common, &mut progress)? {
        return Ok(Exit::Ok);
    }
    let requested = RunConfig {
        plan: &plan,
        resolved: &resolved,
        keep: options.keep,
        witness: None,
        destroy: &options.destroy,
        bundles: &bundles,
        places: &carried.places,
        interrupt: &interrupt,
        driver: &*carried.driver,
    };
    let swept = sweep::carry_out(&requested, &points, &mut state, &mut progress)?;
    swept.kept.iter().for_each(|at| progress.say(&format!("the data was kept in {at}")));
    show(&state, options.format, common)?;
    Ok(swept.early_exit.unwrap_or_else(|| state.exit()))
}
