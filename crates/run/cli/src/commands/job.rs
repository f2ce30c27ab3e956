//! Reads a fio job that is used as a plan, including its included files, and converts it to a plan.

use std::io::Read;
use std::path::Path;

use plimsoll_import::fio_job::{FioImport, import_fio, prepare};
use plimsoll_plan::{Plan, PlanErrors};

use crate::common::Globals;
use crate::error::CliError;
use crate::notes;

/// File name extensions of job files.
const ENDINGS: [&str; 3] = ["fio", "job", "ini"];

/// Returns true if the extension of a file name is that of a fio job.
pub fn is_job(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str());
    path.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Reads a job and expands its included files and environment variables. `-` means stdin.
///
/// # Errors
/// The file cannot be read, or a variable is undefined.
pub fn read(job: &Path) -> Result<String, CliError> {
    let text = if job == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(job)
    };
    let read_error = |path: &Path, error| format!("cannot read {}: {error}", path.display());
    let text = text.map_err(|error| CliError::usage(read_error(job, error)))?;
    let beside = job.parent().unwrap_or(Path::new(""));
    let include = |name: &str| {
        let path = beside.join(name);
        std::fs::read_to_string(&path).map_err(|error| read_error(&path, error))
    };
    prepare(&text, &include, &|name| std::env::var(name).ok())
        .map_err(|says| CliError::usage(format!("{}: {says}", job.display())))
}

/// Returns the name of a job: its file name without the extension.
pub fn name(job: &Path) -> String {
    let stem = job.file_stem().filter(|_| job != Path::new("-"));
    stem.map_or("job".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Reports options that could not be converted.
pub fn report(imported: &FioImport, common: &Globals) {
    for note in imported.notes.iter().filter(|_| !common.quiet) {
        notes::tell(&format!("note: {note}"));
    }
}

/// Converts a job to a plan if all its sections run at the same time.
///
/// # Errors
/// The job cannot be read. The inner error means that its options cannot be converted.
pub fn plan(job: &Path) -> Result<Result<Plan, PlanErrors>, CliError> {
    let text = read(job)?;
    Ok(import_fio(&text, &name(job)).map(|imported| imported.plan))
}
