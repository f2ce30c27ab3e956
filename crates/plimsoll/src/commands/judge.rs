//! `plimsoll judge BUNDLE`: the same evidence under the same rules gives the same verdict, here or on
//! another machine, now or in a year.

use clap::Args;
use plimsoll_evidence::{Bundle, seal};

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `judge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll judge 20261121-093000-quickstart-7f3a\n  \
    plimsoll judge ./bundle --json")]
pub struct Options {
    /// A bundle's directory, or a run as `plimsoll runs` lists them.
    bundle: String,
}

/// Judges the bundle again and rewrites its verdict and report.
///
/// # Errors
/// No bundle, a broken seal, a bundle of a later version.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    let evidence = Bundle::read(&directory)?;
    seal::check(&directory)?;
    let verdict = bundle::judge_and_report(&directory, &evidence)?;
    bundle::show(&directory, &evidence, &verdict, common)?;
    Ok(Exit::of(&evidence.run, verdict.verdict))
}
