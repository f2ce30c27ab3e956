//! `plimsoll experiment run NAME`: runs all arms and compares the results with the published
//! figures.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use plimsoll_experiments::run::{self, Directory, RunOptions};
use plimsoll_experiments::{Definition, ExperimentPlan, Files, StorageKind};

use super::on_hosts::select_driver;
use super::overrides::{ArmFlags, StorageChoice, extra_figures, overrides};
use crate::commands::bundle;
use crate::commands::load_hosts::LoadHosts;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Options of `experiment run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll experiment run e1\n  plimsoll experiment run e1 --arm 3 --arm 6 \
    --set phases.measure='\"10m\"'\n  plimsoll experiment run e1 --published \
    more.csv\n  plimsoll experiment run e3 --on real --path a=/mnt/ext4 --path \
    b=/mnt/btrfs\n  plimsoll experiment run e3 --on real --path 'a=/mnt/a/{host}' --path \
    'b=/mnt/b/{host}' --fleet nats://server --sign fleet.key\n  plimsoll experiment run e6 \
    --table raidz1=raidz1-random.csv\n\nExit codes: 0 FITTED, PREDICTED, CAUGHT or \
    REPORTED;\n1 MISSED; 3 INCOMPLETE or NOT CAUGHT; 130 interrupted (--resume)."
)]
pub struct Options {
    /// Name of an experiment, or a directory with an experiment.toml.
    experiment: String,
    /// Storage on which the arms of the experiment run.
    #[arg(long, value_enum, default_value = "model")]
    on: StorageChoice,
    /// Real target for one of the experiment's places (such as a or b): a directory, a device or an
    /// NFS export.
    #[arg(long, value_name = "PLACE=PATH")]
    path: Vec<String>,
    /// Change a field in the plans of all arms of the experiment: phases.measure=60s.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Run only this arm of the experiment. May be given several times.
    #[arg(long, value_name = "ARM")]
    arm: Vec<String>,
    /// Number of runs of each arm of the experiment, instead of the experiment's own number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: Option<u32>,
    /// File with additional published figures, in the format of published.csv. The model is not
    /// fitted to them.
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
    /// Published table for an arm of the experiment that is a sweep. The table has the same columns
    /// as a table for `model fit`. The model is not fitted to this table.
    #[arg(long, value_name = "ARM=FILE")]
    table: Vec<String>,
    /// Resume an interrupted experiment. Pass its directory, or its name in the catalogue.
    #[arg(long, value_name = "EXPERIMENT")]
    resume: Option<String>,
    /// Allow this block device (full path) to be overwritten.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Store the experiment in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    hosts: LoadHosts,
}

/// Runs the arms of the experiment and shows the results.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let definition = Definition::read(Files::find(&options.experiment)?)?;
    let on = options.on.into();
    let Options { path, set, arm, repeats, hosts, .. } = options;
    let on_hosts = hosts.uses_fleet();
    let overrides = overrides(&ArmFlags { path, set, arm, repeats: *repeats, on_hosts }, on)?;
    let extra_figures = extra_figures(options.published.as_deref(), &options.table)?;
    let mut progress = StderrProgress::new(common.quiet);
    let planned = ExperimentPlan::new(definition, on, overrides, &extra_figures, &mut progress)?;
    let interrupt = interrupt::flag_on_signal()?;
    let selected = select_driver(&planned, hosts, &options.sign, &mut progress, &interrupt)?;
    let places = &selected.places;
    let place = match &options.resume {
        Some(name) => bundle::find(name)?,
        None => places.bundles(options.out.as_deref())?,
    };
    let quiet = common.quiet || on == StorageKind::Model;
    let requested = RunOptions {
        directory: match &options.resume {
            Some(_) => Directory::Resumed(&place),
            None => Directory::Below(&place),
        },
        destroy: &options.destroy,
        places,
        interrupt: &interrupt,
        driver: &*selected.driver,
        of_run: &|| Box::new(StderrProgress::new(quiet)),
    };
    let outcome = run::carry_out(&planned, &requested, &mut progress)?;
    super::show_analysis(&outcome.analysis, &outcome.surroundings, common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", outcome.report.display()))?;
    }
    if interrupt.load(Ordering::Relaxed) {
        progress.say(&format!("to continue: --resume {}", outcome.directory.display()));
        return Ok(Exit::Interrupted);
    }
    Ok(outcome.exit)
}
