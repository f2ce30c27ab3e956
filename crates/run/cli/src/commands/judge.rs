//! `plimsoll judge BUNDLE`: judges evidence again. The same evidence and rules give the same
//! verdict on any machine at any time.

use clap::Args;
use plimsoll_runner::fleet::{is_fleet, read, write_derived};

use super::bundle;
use super::run::fleet;
use crate::common::Globals;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `judge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll judge 20261121-093000-quickstart-7f3a\n  \
    plimsoll judge ./bundle --json")]
pub struct Options {
    /// The directory of a bundle, or a run from `plimsoll runs`.
    bundle: String,
    /// Overwrite the verdict and the report even if the existing files were changed.
    #[arg(long, alias = "anew")]
    rewrite: bool,
}

/// Judges the bundle again, and rewrites its verdict and report.
///
/// # Errors
/// The directory is not a bundle, a later version of Plimsoll created it, or it was changed.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    if is_fleet(&directory) {
        let left = read(&directory)?;
        write_derived(&left)?;
        fleet::show(&left, common)?;
        return Ok(left.exit);
    }
    let reader = if options.rewrite { Reader::ignoring_changes() } else { Reader::new() };
    let loaded = reader.load(&directory)?;
    reader.rewrite_derived(&loaded)?;
    bundle::show(&directory, &loaded.bundle, &loaded.verdict, common)?;
    bundle::print_custody(&loaded.custody.lines(), common)?;
    Ok(loaded.exit())
}
