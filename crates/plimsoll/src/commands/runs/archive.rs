//! Runs that one machine hands to another as a file.

use std::path::Path;

use serde_json::json;

use crate::catalogue;
use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;

/// Writes a run or experiment to one file.
///
/// # Errors
/// A file that is there already, a bundle that can't be read.
pub fn export(directory: &Path, to: &Path, common: &Common) -> Result<Exit, CliError> {
    plimsoll_catalogue::export(directory, to).map_err(catalogue::told)?;
    done(common, "exported", to)
}

/// Takes what another machine exported.
///
/// # Errors
/// No archive, or one that holds no evidence.
pub fn import(archive: &Path, common: &Common) -> Result<Exit, CliError> {
    done(common, "imported", &catalogue::take(&Places::from_environment()?, archive)?)
}

/// Says where something lies now.
fn done(common: &Common, what: &str, path: &Path) -> Result<Exit, CliError> {
    let shown = path.display().to_string();
    if common.json {
        bundle::print(&bundle::json(&json!({ what: shown }))?)?;
    } else {
        bundle::print(&format!("{what}: {shown}\n"))?;
    }
    Ok(Exit::Ok)
}
