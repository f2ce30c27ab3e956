//! `plimsoll experiment run NAME`: all arms, on a model or for real, beside what was published.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use plimsoll_experiments::run::{self, Directory, RunOptions};
use plimsoll_experiments::{Definition, ExperimentPlan, Files, StorageKind};

use super::on_hosts::carried;
use super::overrides::{Said, Where, further, overrides};
use crate::commands::bundle;
use crate::commands::load_hosts::LoadHosts;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Options of `experiment run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll experiment run e1\n  plimsoll experiment run e1 --arm 3 \
        --arm 6 \
    --set phases.measure='\"10m\"'\n  plimsoll experiment run e1 --published more.csv\n  \
    plimsoll experiment \
    run e3 --on real --path a=/mnt/ext4 --path b=/mnt/btrfs\n  plimsoll experiment run e3 --on \
    real \
    --path 'a=/mnt/a/{host}' --path 'b=/mnt/b/{host}' --fleet nats://server --sign fleet.key\n  \
    plimsoll experiment run e6 --table \
    raidz1=raidz1-random.csv\n\nExit codes: 0 FITTED, PREDICTED, \
    CAUGHT, or nothing was published to hold it against;\n1 MISSED; 3 runs are missing, or \
    INVALID where \
    they should not be; 130 interrupted (--resume)."
)]
pub struct Options {
    /// Name of an experiment, or a directory with an experiment.toml.
    experiment: String,
    /// Where its arms run.
    #[arg(long, value_enum, default_value = "model")]
    on: Where,
    /// Target of the real arms: a directory, a device or an NFS export.
    #[arg(long, value_name = "PLACE=PATH")]
    path: Vec<String>,
    /// A field to change in every arm's plan, written as in a plan: phases.measure='"60s"'.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Only this arm; may be given several times.
    #[arg(long, value_name = "ARM")]
    arm: Vec<String>,
    /// Runs of each arm, in place of the experiment's number.
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Further published figures in the format of published.csv, not used for the model.
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
    /// A further published table of a sweep arm, in the columns of `model fit`, not used for the
    /// model.
    #[arg(long, value_name = "ARM=FILE")]
    table: Vec<String>,
    /// Resume an interrupted experiment: its directory, or its name in the catalogue.
    #[arg(long, value_name = "EXPERIMENT")]
    resume: Option<String>,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory for the experiment, in place of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    hosts: LoadHosts,
}

/// Runs the arms, and shows what came of them.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let definition = Definition::read(Files::find(&options.experiment)?)?;
    let on = options.on.into();
    let Options { path, set, arm, repeats, hosts, .. } = options;
    let on_hosts = hosts.is_asked_for();
    let overrides = overrides(&Said { path, set, arm, repeats: *repeats, on_hosts }, on)?;
    let further = further(options.published.as_deref(), &options.table)?;
    let mut progress = StderrProgress::new(common.quiet);
    let planned = ExperimentPlan::new(definition, on, overrides, &further, &mut progress)?;
    let interrupt = interrupt::flag_on_signal()?;
    let carried = carried(&planned, hosts, &options.sign, &mut progress, &interrupt)?;
    let places = &carried.places;
    let place = match &options.resume {
        Some(name) => bundle::find(name)?,
        None => places.bundles(options.out.as_deref())?,
    };
    let quiet = common.quiet || on == StorageKind::Model;
    let asked = RunOptions {
        directory: match &options.resume {
            Some(_) => Directory::Resumed(&place),
            None => Directory::Below(&place),
        },
        destroy: &options.destroy,
        places,
        interrupt: &interrupt,
        driver: &*carried.driver,
        of_run: &|| Box::new(StderrProgress::new(quiet)),
    };
    let outcome = run::carry_out(&planned, &asked, &mut progress)?;
    super::show_analysis(&outcome.analysis, &outcome.surroundings, common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", outcome.report.display()))?;
    }
    if interrupt.load(Ordering::Relaxed) {
        progress.say(&format!("to go on: --resume {}", outcome.directory.display()));
        return Ok(Exit::Interrupted);
    }
    Ok(outcome.exit)
}
