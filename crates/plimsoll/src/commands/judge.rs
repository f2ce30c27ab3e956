//! `plimsoll judge BUNDLE`: the same evidence under the same rules gives the same verdict, here or on
//! another machine, now or in a year.

use clap::Args;
use plimsoll_runner::fleet::{is_fleet, read, write_derived};

use super::bundle;
use super::run::fleet;
use crate::common::Common;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `judge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll judge 20261121-093000-quickstart-7f3a\n  \
    plimsoll judge ./bundle --json")]
pub struct Options {
    /// A bundle's directory, or a run as `plimsoll runs` lists them.
    bundle: String,
    /// Write verdict and report anew where those that lie there are not what the evidence gives.
    #[arg(long)]
    anew: bool,
}

/// Judges the bundle again and rewrites its verdict and report.
///
/// # Errors
/// No bundle, a bundle of a later version, or one that was changed.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    if is_fleet(&directory) {
        let left = read(&directory)?;
        write_derived(&left)?;
        fleet::show(&left, common)?;
        return Ok(left.exit);
    }
    let reader = if options.anew { Reader::ignoring_changes() } else { Reader::new() };
    let loaded = reader.load(&directory)?;
    reader.rewrite_derived(&loaded)?;
    bundle::show(&directory, &loaded.bundle, &loaded.verdict, common)?;
    bundle::print_custody(&loaded.custody.lines(), common)?;
    Ok(loaded.exit())
}
