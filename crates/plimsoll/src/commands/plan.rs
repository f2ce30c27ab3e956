//! `plimsoll plan`: every default filled in, or every error; a fio job as a plan.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_import::fio_job::{import_fio, read_job};
use plimsoll_plan::{Plan, PlanErrors};
use plimsoll_runner::run::check_accepted;

use super::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

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
    /// Turn a fio job into a plan. What cannot be carried over is said in comments and on stderr.
    #[command(after_help = "Example:\n  plimsoll plan import randread.fio > randread.toml")]
    Import {
        /// The fio job file.
        job: PathBuf,
    },
}

/// Checks or imports.
///
/// # Errors
/// Everything that is wrong with the plan or job.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        What::Check { plan } => check(plan, common),
        What::Import { job } => import(job, common),
    }
}

fn check(path: &Path, common: &Common) -> Result<Exit, CliError> {
    let plan = match Plan::load(path, &read_job) {
        Ok(plan) => plan,
        Err(errors) if common.json => {
            bundle::print(&bundle::json(&errors.fault())?)?;
            return Ok(Exit::Usage);
        }
        Err(errors) => return Err(wrong(&errors)),
    };
    check_accepted(&plan.resolve().evidence.accept_unknown)?;
    let usage = |error: plimsoll_plan::ResolvedError| CliError::usage(error.to_string());
    if common.json {
        bundle::print(&bundle::json(&plan.check().map_err(usage)?)?)?;
    } else {
        bundle::print(&plan.resolve().to_toml().map_err(usage)?)?;
    }
    Ok(Exit::Ok)
}

fn import(job: &Path, common: &Common) -> Result<Exit, CliError> {
    let text = std::fs::read_to_string(job)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", job.display())))?;
    let name = job.file_stem().map_or("job".into(), |stem| stem.to_string_lossy());
    let imported = import_fio(&text, &name).map_err(|errors| wrong(&errors))?;
    for note in imported.notes.iter().filter(|_| !common.quiet) {
        notes::tell(&format!("note: {note}"));
    }
    if common.json {
        let plan = imported.plan.check().map_err(|error| CliError::usage(error.to_string()))?;
        bundle::print(&bundle::json(&plan)?)?;
    } else {
        bundle::print(imported.plan.text())?;
    }
    Ok(Exit::Ok)
}

/// Reads a plan.
///
/// # Errors
/// Everything that is wrong with it, as one message.
pub fn load(path: &Path) -> Result<Plan, CliError> {
    let plan = Plan::load(path, &read_job).map_err(|errors| wrong(&errors))?;
    check_accepted(&plan.resolve().evidence.accept_unknown)?;
    Ok(plan)
}

fn wrong(errors: &PlanErrors) -> CliError {
    // The first begins with what every error begins with here.
    let text = errors.to_string();
    CliError::usage(text.trim_end().trim_start_matches("error: ").to_owned())
}
