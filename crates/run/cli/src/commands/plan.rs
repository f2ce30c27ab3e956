//! `plimsoll plan`: lists, shows, creates, checks and imports plans.

mod import;
mod list;
mod new;
mod show;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_plan::{Plan, gallery_plan};
use plimsoll_runner::preflight;
use plimsoll_runner::run::check_accepted;

use self::import::import;
use super::bundle;
use super::plan_changes::{Changes, plan_error};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    what: PlanCommand,
}

#[derive(Debug, Subcommand)]
enum PlanCommand {
    /// List the built-in plans.
    List,
    /// Print the text of a plan, including its comments.
    #[command(after_help = "Example:\n  plimsoll plan show oltp")]
    Show {
        /// The plan: a built-in plan or a file.
        plan: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Create a plan from a built-in plan.
    New(new::Options),
    /// Check a plan and the required space, and print the plan with all defaults filled in.
    #[command(after_help = "Examples:\n  plimsoll plan check mine.toml\n  plimsoll plan check \
        exchange-1000-heavy --path /mnt/db --logs /mnt/log")]
    Check {
        /// The plan: a file or a built-in plan.
        plan: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Convert a fio job or a block trace into a plan. Comments in the plan and messages on stderr
    /// list everything that cannot be converted.
    #[command(
        after_help = "Examples:\n  plimsoll plan import randread.fio > randread.toml\n  cat \
            job.fio | \
        plimsoll plan import -\n  plimsoll plan import app.iolog > replay.toml"
    )]
    Import {
        /// The fio job file or the trace; `-` reads a fio job from stdin.
        job: PathBuf,
        /// Write one plan for each stage of the job to this directory. Each stonewall starts a new
        /// stage.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// The plan or job is invalid. The error lists all problems.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        PlanCommand::List => list::carry_out(common),
        PlanCommand::Show { plan, changes } => show::show(&changes.plan(plan)?, common),
        PlanCommand::New(options) => new::carry_out(options, common),
        PlanCommand::Check { plan, changes } => check(plan, changes, common),
        PlanCommand::Import { job, out } => import(job, out.as_deref(), common),
    }
}

fn check(name: &str, changes: &Changes, common: &Globals) -> Result<Exit, CliError> {
    let plan = match changes.read(name)? {
        Ok(plan) => plan,
        Err(errors) if common.json => {
            bundle::print(&bundle::json(&errors.fault())?)?;
            return Ok(Exit::Usage);
        }
        Err(errors) => return Err(plan_error(&errors)),
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

/// Reads a plan: a file or a built-in plan.
///
/// # Errors
/// The plan is invalid. The message lists all errors.
pub fn load(path: &Path) -> Result<Plan, CliError> {
    Changes::default().plan(&path.to_string_lossy())
}

/// Returns true if the name is a plan: a file, or a built-in plan if no directory has that name.
pub fn is_plan(name: &str) -> bool {
    let path = Path::new(name);
    path.is_file() || (gallery_plan(name).is_some() && !path.exists())
}
