//! `plimsoll sweep`: I/O size × read share × pattern × depth, as one table and charts.

mod flags;
mod show;

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::run_request::RunConfig;
use plimsoll_runner::sweep::{self, EarlierSweep, SweepProgress};

use self::flags::Flags;
use self::show::{Format, show};
use super::chosen::Changes;
use super::load_hosts::LoadHosts;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll sweep matrix.toml --path /mnt/x --set phases.measure=1m\n  plimsoll sweep \
    --path /mnt/x --sizes 4KiB..128KiB --reads 100,75,50,25,0\n  plimsoll sweep --nfs nfs://10.0.0.5/e1 --nfs \
    nfs://10.0.0.5/e2 --metadata 5 --queue-depths 4,1 --quick\n\nEach point is a run with a bundle of \
    its own, on the same data. A sweep that was interrupted goes on where it stopped when the same \
    one is asked for again."
)]
pub struct Options {
    /// The plan: a file, or one that is built in. Without one, the flags say what is swept over what.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    flags: Flags,
    /// Begin anew where an earlier sweep of the same plan was interrupted.
    #[arg(long)]
    anew: bool,
    /// Say what would be done and how long it takes, point by point, look at every place and server, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on where the sweep would measure for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Measure nothing: tell again what the latest sweep of this plan found.
    #[arg(long, conflicts_with_all = ["anew", "dry_run"])]
    told: bool,
    /// Keep the data after the last point.
    #[arg(long)]
    keep: bool,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    hosts: LoadHosts,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    metrics: Metrics,
    /// In which form the result is printed.
    #[arg(long, default_value = "text")]
    format: Format,
}

/// Sweeps.
///
/// # Errors
/// A plan or flags that are wrong, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = match &options.plan {
        Some(name) => options.changes.plan(name)?,
        None => options.flags.plan(&options.changes)?,
    };
    let resolved = plan.resolve();
    let points = sweep::points(&resolved)?;
    let mut progress = options.metrics.progress(plan.name(), common)?;
    let interrupt = interrupt::flag_on_signal()?;
    let carried = options.hosts.carried(&resolved, &options.sign, &mut progress, &interrupt)?;
    let bundles = carried.places.bundles(options.out.as_deref())?;
    let earlier = EarlierSweep::from_flags(options.anew, options.told);
    let mut sweeping =
        SweepProgress::begin(&resolved, &points, &bundles, &carried.places, earlier)?;
    if options.told {
        sweeping.require_points(&bundles)?;
        return show(&sweeping, options.format, common).map(|()| sweeping.exit());
    }
    progress.say(&sweeping.estimate(&resolved, &points));
    let points_left = Preflight {
        measurements: sweeping.remaining(&points),
        unit: "point",
        data_sets: 1,
        yes: options.yes,
        dry_run: options.dry_run,
        listing: sweeping.list_points(&points),
    };
    if !options.hosts.begins(&resolved, &points_left, &mut progress)? {
        return Ok(Exit::Ok);
    }
    let asked = RunConfig {
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
    let swept = sweep::carry_out(&asked, &points, &mut sweeping, &mut progress)?;
    swept.kept.iter().for_each(|at| progress.say(&format!("the data was kept in {at}")));
    show(&sweeping, options.format, common)?;
    Ok(swept.early_exit.unwrap_or_else(|| sweeping.exit()))
}
