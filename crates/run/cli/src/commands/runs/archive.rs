//! Exports, imports and removes runs.

use std::path::Path;

use serde_json::json;

use crate::catalogue;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;
use crate::removal;

/// Writes a run or experiment to one file.
///
/// # Errors
/// The file exists already, or a bundle cannot be read.
pub fn export(directory: &Path, to: &Path, common: &Globals) -> Result<Exit, CliError> {
    plimsoll_catalogue::export(directory, to).map_err(catalogue::catalogue_error)?;
    done(common, "exported", to)
}

/// Imports an archive from another machine.
///
/// # Errors
/// The file is not an archive, or contains no evidence.
pub fn import(archive: &Path, common: &Globals) -> Result<Exit, CliError> {
    done(common, "imported", &catalogue::import_archive(&Places::from_environment()?, archive)?)
}

/// Removes the bundle of a run, or all bundles of an experiment.
///
/// # Errors
/// Some files cannot be removed, or were not created by Plimsoll.
pub fn remove(directory: &Path, common: &Globals) -> Result<Exit, CliError> {
    removal::whole(directory)?;
    done(common, "removed", directory)
}

/// Prints the path of the archive or run.
fn done(common: &Globals, what: &str, path: &Path) -> Result<Exit, CliError> {
    let shown = path.display().to_string();
    if common.json {
        bundle::print(&bundle::json(&json!({ what: shown }))?)?;
    } else {
        bundle::print(&format!("{what}: {shown}\n"))?;
    }
    Ok(Exit::Ok)
}
