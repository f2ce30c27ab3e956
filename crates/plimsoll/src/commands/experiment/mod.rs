//! `plimsoll experiment`: the published experiments, each as one command. One file per subcommand.

mod list;
mod pool;
mod run;
mod show;
mod tell;

use clap::{Args, Subcommand};

pub use tell::{FILES as PUBLISHED_FILES, show_again};

use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `experiment`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll experiment list\n  plimsoll experiment show e1\n  plimsoll \
    experiment run e1\n  plimsoll experiment run e3 --on real --path a=/mnt/ext4 --path b=/mnt/btrfs"
)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the experiments that come with the program.
    List,
    /// Show an experiment: what was done and published, its arms and what it asks.
    Show(show::Options),
    /// Run all arms, and tell what came out beside what was published, and why.
    Run(Box<run::Options>),
}

/// Carries a subcommand out.
///
/// # Errors
/// An experiment, plan or target that is wrong.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        What::List => list::carry_out(common),
        What::Show(options) => show::carry_out(options, common),
        What::Run(options) => run::carry_out(options, common),
    }
}
