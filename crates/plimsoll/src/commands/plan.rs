//! `plimsoll plan`: the plans that are built in, a plan of one's own, every default filled in or
//! every error, a fio
//! job as a plan.

mod import;
mod list;
mod new;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_plan::{Plan, ready};
use plimsoll_runner::preflight;
use plimsoll_runner::run::check_accepted;

use self::import::import;
use super::bundle;
use super::chosen::{Changes, wrong};
use crate::common::Common;
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
    /// List the built-in plans.
    List,
    /// Print the text of a plan, with its comments.
    #[command(after_help = "Example:\n  plimsoll plan show oltp")]
    Show {
        /// The plan: a built-in one, or a file.
        plan: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Create a plan from a built-in one.
    New(new::Options),
    /// Check a plan and its space, and print it with every default filled in.
    #[command(after_help = "Examples:\n  plimsoll plan check mine.toml\n  plimsoll plan check \
        exchange-1000-heavy --path /mnt/db --logs /mnt/log")]
    Check {
        /// The plan: a file, or a built-in one.
        plan: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Convert a fio job or a block trace into a plan. Comments and stderr list everything that
    /// cannot be converted.
    #[command(
        after_help = "Examples:\n  plimsoll plan import randread.fio > randread.toml\n  cat \
            job.fio | \
        plimsoll plan import -\n  plimsoll plan import app.iolog > replay.toml"
    )]
    Import {
        /// The fio job file, or the trace; `-` is stdin (a job).
        job: PathBuf,
        /// Directory for one plan per stage of the job (jobs after a stonewall wait for those
        /// before it).
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Lists, shows, makes, checks or imports.
///
/// # Errors
/// Everything that is wrong with the plan or job.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        What::List => list::carry_out(common),
        What::Show { plan, changes } => {
            bundle::print(changes.plan(plan)?.text())?;
            Ok(Exit::Ok)
        }
        What::New(options) => new::carry_out(options, common),
        What::Check { plan, changes } => check(plan, changes, common),
        What::Import { job, out } => import(job, out.as_deref(), common),
    }
}

fn check(name: &str, changes: &Changes, common: &Common) -> Result<Exit, CliError> {
    let plan = match changes.read(name)? {
        Ok(plan) => plan,
        Err(errors) if common.json => {
            bundle::print(&bundle::json(&errors.fault())?)?;
            return Ok(Exit::Usage);
        }
        Err(errors) => return Err(wrong(&errors)),
    };
    check_accepted(&plan.resolve().evidence.accept_unknown)?;
    preflight::check_space(&plan.resolve())?;
    let usage = |error: plimsoll_plan::ResolvedError| CliError::usage(error.to_string());
    if common.json {
        bundle::print(&bundle::json(&plan.check().map_err(usage)?)?)?;
    } else {
        bundle::print(&plan.resolve().to_toml().map_err(usage)?)?;
    }
    Ok(Exit::Ok)
}

/// Reads a plan: a file, or one that is built in.
///
/// # Errors
/// Everything that is wrong with it, as one message.
pub fn load(path: &Path) -> Result<Plan, CliError> {
    Changes::default().plan(&path.to_string_lossy())
}

/// Whether a name is that of a plan: a file, or one that is built in and hides no directory.
pub fn is_plan(name: &str) -> bool {
    let path = Path::new(name);
    path.is_file() || (ready(name).is_some() && !path.exists())
}
