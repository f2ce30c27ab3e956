//! `plimsoll runs`: the catalogue of runs, built from the ledger and the existing bundles.

mod archive;
mod filter;
mod labels;
mod list;
mod push;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::archive::{export, import, remove};
use self::filter::RunFilter;
use self::labels::{note, tag};
use self::list::list;
use self::push::push;
use self::show::show;
use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `runs`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  plimsoll runs\n  plimsoll runs --verdict fail --since 2026-11-01\n  \
        plimsoll runs show last\n  plimsoll runs tag 12 before-firmware\n  plimsoll runs export 12 \
        run-12.tar.gz\n  plimsoll runs push --catalogue postgres://ann@db.example/storage\n  \
        plimsoll runs --catalogue postgres://ann@db.example/storage\n\nTo select a run, use its \
        number, its name, a prefix of its name, or `last`. The name of a\nplan selects its latest \
        run. Every command that expects a bundle accepts these names."
)]
pub struct Options {
    #[command(subcommand)]
    what: Option<RunsCommand>,
    #[command(flatten)]
    of: RunFilter,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List all runs, including incomplete runs, in the order of their start times.
    List(RunFilter),
    /// Show the verdict of a run, or the summary of an experiment.
    Show {
        /// The run or experiment.
        run: String,
    },
    /// Remove the bundle of a run, or all bundles of an experiment. The ledger entries are not
    /// removed.
    Rm {
        /// The run or experiment.
        run: String,
    },
    /// Tag a run or experiment.
    Tag {
        /// The run or experiment.
        run: String,
        /// The new tags. Without tags, the current tags are printed.
        tags: Vec<String>,
        /// Remove the given tags instead of adding them.
        #[arg(long)]
        remove: bool,
    },
    /// Set the note of a run or experiment; "" removes it.
    Note {
        /// The run or experiment.
        run: String,
        /// The new note. Without a note, the current note is printed.
        text: Option<String>,
    },
    /// Export a run or experiment to one file, for another machine.
    Export {
        /// The run or experiment.
        run: String,
        /// The archive, a .tar.gz file that must not exist yet.
        to: PathBuf,
    },
    /// Copy runs and their bundles to the team's catalogue (--catalogue). Without names, copies all
    /// new or changed runs.
    Push {
        /// The runs or experiments.
        runs: Vec<String>,
    },
    /// Import a run or experiment that another machine exported.
    Import {
        /// The archive.
        archive: PathBuf,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// The ledger is damaged, or the run is unknown.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        None => list(&options.of, common),
        Some(RunsCommand::List(of)) => list(of, common),
        Some(RunsCommand::Show { run }) => show(&bundle::find(run)?, common),
        Some(RunsCommand::Rm { run }) => remove(&bundle::find(run)?, common),
        Some(RunsCommand::Tag { run, tags, remove }) => {
            tag(&bundle::find(run)?, tags, *remove, common)
        }
        Some(RunsCommand::Note { run, text }) => note(&bundle::find(run)?, text.as_deref(), common),
        Some(RunsCommand::Export { run, to }) => export(&bundle::find(run)?, to, common),
        Some(RunsCommand::Push { runs }) => push(runs, common),
        Some(RunsCommand::Import { archive }) => import(archive, common),
    }
}
