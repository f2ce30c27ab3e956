//! Converts a fio job to one plan, or to one plan for each stage; converts a trace to a plan that
//! replays it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use plimsoll_import::fio_job::{FioImport, import_fio, import_stages};
use plimsoll_import::trace;

use super::new;
use super::show::show;
use crate::commands::plan_changes::plan_error;
use crate::commands::run::import_trace;
use crate::commands::{bundle, job};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Prints the plan of a job or trace, or writes the plans of the stages of a job to a directory.
///
/// # Errors
/// The job or trace is invalid. The error lists all problems.
pub fn import(job: &Path, out: Option<&Path>, common: &Globals) -> Result<Exit, CliError> {
    if job != Path::new("-") && out.is_none() && is_trace(job) {
        let (plan, survey) = import_trace(job)?;
        if !common.quiet {
            notes::tell(&format!("note: {}", survey.description()));
        }
        return show(&plan, common);
    }
    if let Some(says) = refusal(job) {
        return Err(CliError::usage(format!("{}: {says}", job.display())).hint(
            "docs/traces.md describes the known formats of traces; a fio job has sections such as \
             [job1]",
        ));
    }
    let (text, name) = (job::read(job)?, job::name(job));
    let tell = |imported: &FioImport| job::report(imported, common);
    if let Some(directory) = out {
        let stages = import_stages(&text, &name).map_err(|errors| plan_error(&errors))?;
        std::fs::create_dir_all(directory).map_err(|error| {
            CliError::environment(format!("cannot create {}: {error}", directory.display()))
        })?;
        for (name, imported) in &stages {
            tell(imported);
            let path = directory.join(format!("{name}.toml"));
            new::write(&path, imported.plan.text())?;
            bundle::print(&format!("plimsoll run {}\n", path.display()))?;
        }
        return Ok(Exit::Ok);
    }
    let imported = import_fio(&text, &name).map_err(|errors| plan_error(&errors))?;
    tell(&imported);
    show(&imported.plan, common)
}

/// Returns true if the start of the file looks like a trace.
fn is_trace(path: &Path) -> bool {
    head(path).is_some_and(|head| trace::opens(&head))
}

/// Returns the reason why a file is neither a job nor a trace. A job has sections and options.
fn refusal(path: &Path) -> Option<String> {
    let head = head(path)?;
    let text = String::from_utf8_lossy(&head);
    let is_job = text.lines().any(|line| line.contains(['[', '=']) || line.starts_with("include"));
    (!is_job && !text.trim().is_empty()).then(|| trace::refusal(&head))
}

fn head(path: &Path) -> Option<Vec<u8>> {
    const HEAD_BYTES: u64 = 64 << 10;
    let file = File::open(path).ok()?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}
