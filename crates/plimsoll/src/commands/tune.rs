//! `plimsoll tune PLAN`: the load line, the knee, and the fewest threads that meet the requirement.

use std::path::PathBuf;

use clap::Args;
use plimsoll_judge::stats::tune::STEPS_MAX;
use plimsoll_report::{text, tuning_document};
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::search::{SearchOptions, SearchResult, range, search};

use super::bundle;
use super::chosen::Changes;
use super::load_hosts::LoadHosts;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Options of `tune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll tune exchange-1000-heavy --path /mnt/db\n  plimsoll tune plan.toml \
    --max 64 --json\n\nA mail store is turned by its threads, the clients of a matrix by their \
    queue depth, an open loop\nby its rate. Each step is a run with a bundle of its own."
)]
pub struct Options {
    /// The plan: a file, or one that is built in.
    plan: String,
    #[command(flatten)]
    changes: Changes,
    /// Smallest load to try: threads, queue depth, or operations per second of an open loop.
    #[arg(long, value_name = "LOAD")]
    min: Option<u64>,
    /// Largest load to try.
    #[arg(long, value_name = "LOAD")]
    max: Option<u64>,
    /// Most steps, 16 at most.
    #[arg(long, value_name = "N", default_value_t = STEPS_MAX)]
    steps: usize,
    /// Make the data anew for each step; otherwise each step works on the data of the one before.
    #[arg(long)]
    fresh: bool,
    /// Keep the data after the last step.
    #[arg(long)]
    keep: bool,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say what would be done, look at every place and server, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on where the search would measure for more than 30 days.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    hosts: LoadHosts,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    metrics: Metrics,
}

/// Finds the load line.
///
/// # Errors
/// A plan that is wrong or has nothing to turn, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = options.changes.plan(&options.plan)?;
    let mut progress = options.metrics.progress(plan.name(), common)?;
    let interrupt = interrupt::flag_on_signal()?;
    let resolved = plan.resolve();
    let carried = options.hosts.carried(&resolved, &options.sign, &mut progress, &interrupt)?;
    let places = &carried.places;
    let bundles = places.bundles(options.out.as_deref())?;
    let range = range(&resolved, options.min, options.max, options.steps)?;
    let (fresh, yes, dry_run) = (options.fresh, options.yes, options.dry_run);
    let steps = Preflight::steps(&resolved, &range, fresh, yes, dry_run)?;
    progress.say("the search takes all its steps at most:");
    if !options.hosts.begins(&resolved, &steps, &mut progress)? {
        return Ok(Exit::Ok);
    }
    let destroy = options.destroy.clone();
    let (keep, driver) = (options.keep, &*carried.driver);
    let asked = SearchOptions { range, fresh, keep, destroy, bundles, driver };
    let found = search(&plan, &resolved, &asked, places, &mut progress, &interrupt)?;
    show(&found, common)?;
    for directory in &found.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(found.exit)
}

fn show(found: &SearchResult, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&found.tuning)?);
    }
    let mut text = text::document(&tuning_document(&found.tuning), &bundle::style(common));
    text.push_str(&format!("\nreport: {}\n", found.report.display()));
    bundle::print(&text)
}
