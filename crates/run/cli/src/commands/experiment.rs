//! `plimsoll experiment`: the published experiments. One file per subcommand.

mod list;
mod on_hosts;
mod overrides;
mod run;
mod show;

use clap::{Args, Subcommand};
use plimsoll_experiments::analysis::Analysis;
use plimsoll_experiments::report::{Surroundings, analysis_document};

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `experiment`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll experiment list\n  plimsoll experiment show e1\n  \
        plimsoll \
    experiment run e1\n  plimsoll experiment run e3 --on real --path a=/mnt/ext4 --path \
    b=/mnt/btrfs")]
pub struct Options {
    #[command(subcommand)]
    what: ExperimentCommand,
}

#[derive(Debug, Subcommand)]
enum ExperimentCommand {
    /// List the built-in experiments.
    List,
    /// Show an experiment: the publication that it repeats, its arms (the variants that it runs)
    /// and its questions.
    Show(show::Options),
    /// Run all arms of an experiment, and compare their results with the published results.
    Run(Box<run::Options>),
}

/// Runs a subcommand.
///
/// # Errors
/// The experiment, a plan or a target is invalid.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        ExperimentCommand::List => list::carry_out(common),
        ExperimentCommand::Show(options) => show::carry_out(options, common),
        ExperimentCommand::Run(options) => run::carry_out(options, common),
    }
}

/// Shows an analysis.
///
/// # Errors
/// Stdout cannot be written.
fn show_analysis(
    analysis: &Analysis,
    around: &Surroundings,
    common: &Globals,
) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(analysis)?);
    }
    let document = analysis_document(analysis, around);
    bundle::print(&plimsoll_report::text::document(&document, &bundle::style(common)))
}
