//! A fio job as a plan, or as one for each of its stages.

use std::path::Path;

use plimsoll_import::fio_job::{FioImport, import_fio, import_stages};

use super::new;
use crate::commands::chosen::wrong;
use crate::commands::{bundle, job};
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the plan of a job, or writes those of its stages to a directory.
///
/// # Errors
/// Everything that is wrong with the job.
pub fn import(job: &Path, out: Option<&Path>, common: &Common) -> Result<Exit, CliError> {
    let (text, name) = (job::read(job)?, job::name(job));
    let tell = |imported: &FioImport| job::tell(imported, common);
    if let Some(directory) = out {
        let stages = import_stages(&text, &name).map_err(|errors| wrong(&errors))?;
        std::fs::create_dir_all(directory).map_err(|error| {
            CliError::environment(format!("cannot make {}: {error}", directory.display()))
        })?;
        for (name, imported) in &stages {
            tell(imported);
            let path = directory.join(format!("{name}.toml"));
            new::write(&path, imported.plan.text())?;
            bundle::print(&format!("plimsoll run {}\n", path.display()))?;
        }
        return Ok(Exit::Ok);
    }
    let imported = import_fio(&text, &name).map_err(|errors| wrong(&errors))?;
    tell(&imported);
    if common.json {
        let plan = imported.plan.check().map_err(|error| CliError::usage(error.to_string()))?;
        bundle::print(&bundle::json(&plan)?)?;
    } else {
        bundle::print(imported.plan.text())?;
    }
    Ok(Exit::Ok)
}
