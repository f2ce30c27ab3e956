//! `plimsoll plan check PLAN`: every default filled in, or every error.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_plan::Plan;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check a plan and print it with every default filled in.
    #[command(after_help = "Example:\n  plimsoll plan check exchange-1000-heavy.toml")]
    Check {
        /// The plan.
        plan: PathBuf,
    },
}

/// Checks the plan.
///
/// # Errors
/// Everything that is wrong with it.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let What::Check { plan } = &options.what;
    let resolved = load(plan)?.resolve();
    if common.json {
        bundle::print(&bundle::json(&resolved)?)?;
    } else {
        let text = resolved.to_toml().map_err(|error| CliError::usage(error.to_string()))?;
        bundle::print(&text)?;
    }
    Ok(Exit::Ok)
}

/// Reads a plan.
///
/// # Errors
/// Everything that is wrong with it, as one message.
pub fn load(path: &std::path::Path) -> Result<Plan, CliError> {
    Plan::load(path).map_err(|errors| CliError::usage(errors.to_string().trim_end().to_owned()))
}
