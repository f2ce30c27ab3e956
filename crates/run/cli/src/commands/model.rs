//! `plimsoll model`: storage systems that are described in TOML and simulated in virtual time. One
//! file per subcommand.

mod count;
mod fit;
mod list;
mod new;
mod predict;
mod run;
mod serve;
mod show;
mod size;
mod table;
mod target;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use plimsoll_report::document::Document;
use plimsoll_runner::model_run::model_error;

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `model`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model list\n  plimsoll model show zfs-flash\n  plimsoll \
        model \
    run plan.toml --model adsf-hybrid --explain\n  plimsoll model fit zfs-flash measured.csv \
    --predict other.csv --with pool.layout=raidz"
)]
pub struct Options {
    #[command(subcommand)]
    what: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// List the built-in models.
    List,
    /// Show a model: the system that it represents, and each parameter with its unit and source.
    Show(show::Options),
    /// Run a plan on a model, and show the bottleneck.
    Run(run::Options),
    /// Find the smallest number of nodes (or disks) for a mail store, its headroom and the next
    /// bottleneck.
    Size(size::Options),
    /// Serve the modelled system over NFS, with the model's response times.
    Serve(serve::Options),
    /// Fit the free parameters of a model to a measured table, and optionally predict another
    /// table.
    Fit(fit::Options),
    /// Create a model file for a measured system: choose the model's building blocks, and fit their
    /// parameters.
    New(new::Options),
    /// Predict missing cells of a measured table, with an interval for each prediction.
    Predict(predict::Options),
}

/// Runs a subcommand.
///
/// # Errors
/// The model, the plan or the table is invalid.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        ModelCommand::List => list::carry_out(common),
        ModelCommand::Show(options) => show::carry_out(options, common),
        ModelCommand::Run(options) => run::carry_out(options, common),
        ModelCommand::Serve(options) => serve::carry_out(options, common),
        ModelCommand::Size(options) => size::carry_out(options, common),
        ModelCommand::Fit(options) => fit::carry_out(options, common),
        ModelCommand::New(options) => new::carry_out(options, common),
        ModelCommand::Predict(options) => predict::carry_out(options, common),
    }
}

/// Parses BLOCK.FIELD=VALUE arguments, which change parameters of the model file.
fn settings(given: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let one = |text: &String| match text.split_once('=') {
        Some((path, value)) if path.contains('.') && !value.is_empty() => {
            Ok((path.to_owned(), value.to_owned()))
        }
        _ => Err(CliError::usage(format!("\"{text}\" does not set a parameter to a value"))
            .hint("use BLOCK.FIELD=VALUE, such as pool.groups=6 or pool.layout=raidz")),
    };
    given.iter().map(one).collect()
}

/// Prints a document to the terminal.
fn show(document: &Document, common: &Globals) -> Result<(), CliError> {
    bundle::print(&plimsoll_report::text::document(document, &bundle::style(common)))
}

/// Like [`show`], without the headline.
fn show_sections(document: &Document, common: &Globals) -> Result<(), CliError> {
    let text = plimsoll_report::text::document(document, &bundle::style(common));
    bundle::print(&format!("\n{}", text.trim_start()))
}
