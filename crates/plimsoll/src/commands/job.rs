//! A fio job in place of a plan: its file, what it includes, and its streams as a plan.

use std::io::Read;
use std::path::Path;

use plimsoll_import::fio_job::{FioImport, import_fio, prepare};
use plimsoll_plan::{Plan, PlanErrors};

use crate::common::Common;
use crate::error::CliError;
use crate::notes;

/// How the names of job files end.
const ENDINGS: [&str; 3] = ["fio", "job", "ini"];

/// Whether a file is a job and no plan, by its name.
pub fn is_one(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str());
    path.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// A job's text, with what it includes and the variables of the environment in place; `-` is stdin.
///
/// # Errors
/// A file that can't be read, a variable that is not set.
pub fn read(job: &Path) -> Result<String, CliError> {
    let text = if job == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(job)
    };
    let unread = |path: &Path, error| format!("cannot read {}: {error}", path.display());
    let text = text.map_err(|error| CliError::usage(unread(job, error)))?;
    let beside = job.parent().unwrap_or(Path::new(""));
    let include = |name: &str| {
        let path = beside.join(name);
        std::fs::read_to_string(&path).map_err(|error| unread(&path, error))
    };
    prepare(&text, &include, &|name| std::env::var(name).ok())
        .map_err(|says| CliError::usage(format!("{}: {says}", job.display())))
}

/// What a job is called: its file without its ending.
pub fn name(job: &Path) -> String {
    let stem = job.file_stem().filter(|_| job != Path::new("-"));
    stem.map_or("job".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Says what could not be carried over.
pub fn tell(imported: &FioImport, common: &Common) {
    for note in imported.notes.iter().filter(|_| !common.quiet) {
        notes::tell(&format!("note: {note}"));
    }
}

/// A job whose sections all run together, as a plan.
///
/// # Errors
/// A job that can't be read; within it, what can't be carried over.
pub fn plan(job: &Path) -> Result<Result<Plan, PlanErrors>, CliError> {
    let text = read(job)?;
    Ok(import_fio(&text, &name(job)).map(|imported| imported.plan))
}
