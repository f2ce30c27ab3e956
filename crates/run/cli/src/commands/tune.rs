//! `plimsoll tune PLAN`: finds the load line, the knee, and the lowest load that meets the
//! requirement.

use std::path::PathBuf;

use clap::{Args, builder::RangedU64ValueParser};
use plimsoll_judge::stats::tune::STEPS_MAX;
use plimsoll_report::{text, tuning_document};
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::search::{SearchOptions, SearchResult, range, search};

use super::bundle;
use super::load_flags::{LoadFlags, LoadPlan};
use super::load_hosts::LoadHosts;
use super::plan_changes::Changes;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Options of `tune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll tune exchange-1000-heavy --path /mnt/db\n  plimsoll tune \
        plan.toml --max 64 --json\n  plimsoll tune --path /mnt/x --size 8KiB --reads 70 --for \
        1m\n  plimsoll tune neighbour-backup --path /mnt/db --vary backup\n\nA search varies the \
        number of threads of a mail store, the queue depth of a matrix workload, or\nthe rate of \
        an open loop. Each step is a run with its own bundle."
)]
pub struct Options {
    /// The plan: a file or a built-in plan. Without a plan, the flags describe the load, and the
    /// search varies its queue depth.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Vary only the load of this stream, and find its highest load at which the plan still meets
    /// its requirement. Other streams keep their load. May be given several times.
    #[arg(long, value_name = "STREAM", conflicts_with = "fleet")]
    vary: Vec<String>,
    /// Smallest load to try: threads, queue depth, or operations per second of an open loop.
    #[arg(long, value_name = "LOAD", value_parser = clap::value_parser!(u64).range(1..))]
    min: Option<u64>,
    /// Largest load to try.
    #[arg(long, value_name = "LOAD", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// Maximum number of steps, up to 16.
    #[arg(long, value_name = "N", default_value_t = STEPS_MAX,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=STEPS_MAX as u64))]
    steps: usize,
    /// Create the data again for each step. By default, all steps use the same data.
    #[arg(long)]
    fresh: bool,
    /// Keep the data after the last step.
    #[arg(long)]
    keep: bool,
    /// Allow this block device (full path) to be overwritten.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Store the experiment in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show the planned runs and check every target and server, but run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Accept a search that measures for more than 30 days.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    metrics: Metrics,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    hosts: LoadHosts,
}

/// Measures the load line (rate and latency at each load).
///
/// # Errors
/// The plan is invalid or has no load to vary, or a target cannot be used.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let again = "repeat the search, or repeat one load with `plimsoll run --runs`";
    options.load.refuse_runs("tune", "load", again)?;
    let LoadPlan { plan, meanings } = match &options.plan {
        Some(name) => options.load.named_plan(name, &options.changes)?,
        None => options.load.plan("plimsoll tune", &options.changes)?,
    };
    let mut progress = options.metrics.progress(plan.name(), common)?;
    meanings.iter().for_each(|says| progress.say(says));
    let interrupt = interrupt::flag_on_signal()?;
    let resolved = plan.resolve();
    let carried = options.hosts.select(&resolved, &options.sign, &mut progress, &interrupt)?;
    let places = &carried.places;
    let bundles = places.bundles(options.out.as_deref())?;
    let range = range(&resolved, options.min, options.max, options.steps, &options.vary)?;
    let (fresh, yes, dry_run) = (options.fresh, options.yes, options.dry_run);
    let steps = Preflight::steps(&resolved, &range, fresh, yes, dry_run)?
        .with_data(&options.destroy, options.keep);
    if !options.hosts.check(&resolved, &steps, common, &mut progress)? {
        return Ok(Exit::Ok);
    }
    let (keep, driver, destroy) = (options.keep, &*carried.driver, options.destroy.clone());
    let requested = SearchOptions { range, fresh, keep, destroy, bundles, driver };
    let found = search(&plan, &resolved, &requested, places, &mut progress, &interrupt)?;
    show(&found, common)?;
    found.kept.iter().for_each(|at| progress.say(&format!("the data was kept in {at}")));
    Ok(found.exit)
}

fn show(found: &SearchResult, common: &Globals) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&found.tuning)?);
    }
    let mut text = text::document(&tuning_document(&found.tuning), &bundle::style(common));
    text.push_str(&format!("\nreport: {}\n", found.report.display()));
    bundle::print(&text)
}
