//! `plimsoll observe -- CMD…`: runs another benchmark and observes it (tier T2).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use plimsoll_runner::observe::{self, Observation, Signals, detection};

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::metrics::Metrics;

/// Options of `observe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll observe --path /mnt/san --result out.json -- fio \
    --filename=/mnt/san/f --size=10g \\\n      --rw=randread --direct=1 --output-format=json+ \
    --output=out.json --name=a\n  plimsoll observe --path /mnt/san -- ./my-benchmark\n\nPlimsoll \
    detects the command's files and devices by watching its processes. It also audits \
    result\nfiles in a known format if the command line contains their names. The exit code is \
    that of the\nverdict, or 5 if the command fails. Plimsoll passes the first signal on to the \
    command; on the\nsecond signal, it sends SIGKILL to the command.")]
pub struct Options {
    /// Target of the command: a directory, file or device. May be given several times.
    #[arg(long, value_name = "PATH", default_value = ".")]
    path: Vec<PathBuf>,
    /// Result file that the command writes (fio JSON or another known format). Its figures are
    /// judged together with the observations.
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// Store the bundle in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    metrics: Metrics,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs, observes and judges the command.
///
/// # Errors
/// A path or the command is missing, a result cannot be read, or a bundle cannot be written.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let observation = Observation {
        command: options.command.clone(),
        paths: options.path.clone(),
        result: options.result.clone(),
        bundles: options.out.clone(),
        places: keys::places(&options.sign)?,
    };
    let stop = interrupt::flag_on_signal()?;
    let signals = Signals { stop: &stop, latest: &interrupt::latest };
    let program = options.command.first().map(Path::new).and_then(Path::file_name);
    let program = program.unwrap_or_default().to_string_lossy();
    let mut progress = options.metrics.progress(&format!("observe {program}"), common)?;
    let since = SystemTime::now();
    let finished = observe::carry_out(&observation, &signals, &mut progress)?;
    bundle::show(&finished.directory, &finished.evidence, &finished.verdict, common)?;
    let detected = detection::find_results(&options.command, since, options.result.as_deref());
    if !common.json {
        let style = bundle::style(common);
        bundle::print(&detection::format(&finished.evidence, &options.path, &detected, &style))?;
    }
    let exit = finished.exit();
    Ok(if exit == Exit::Ok && detection::is_impossible(&detected) { Exit::NoVerdict } else { exit })
}
