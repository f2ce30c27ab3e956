//! Exports and imports runs as files.

use std::path::Path;

use serde_json::json;

use crate::catalogue;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;

/// Writes a run or experiment to one file.
///
/// # Errors
/// An existing file, or an unreadable bundle.
pub fn export(directory: &Path, to: &Path, common: &Globals) -> Result<Exit, CliError> {
    plimsoll_catalogue::export(directory, to).map_err(catalogue::catalogue_error)?;
    done(common, "exported", to)
}

/// Imports an archive of another machine.
///
/// # Errors
/// The file is not an archive, or has no evidence.
pub fn import(archive: &Path, common: &Globals) -> Result<Exit, CliError> {
    done(common, "imported", &catalogue::import_archive(&Places::from_environment()?, archive)?)
}

/// Prints the resulting path.
fn done(common: &Globals, what: &str, path: &Path) -> Result<Exit, CliError> {
    let shown = path.display().to_string();
    if common.json {
        bundle::print(&bundle::json(&json!({ what: shown }))?)?;
    } else {
        bundle::print(&format!("{what}: {shown}\n"))?;
    }
    Ok(Exit::Ok)
}
