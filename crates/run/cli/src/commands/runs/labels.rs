//! Tags and notes of a run or experiment.

use std::path::Path;

use plimsoll_catalogue::Labels;
use plimsoll_report::runs::labels_text;

use crate::catalogue;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Adds or removes tags of a run or experiment, and prints its tags.
///
/// # Errors
/// The directory is missing, or labels cannot be read or written.
pub fn tag(
    directory: &Path,
    tags: &[String],
    remove: bool,
    common: &Globals,
) -> Result<Exit, CliError> {
    let change = |labels: &mut Labels| match remove {
        true => labels.tags.retain(|tag| !tags.contains(tag)),
        false => labels.tags.extend(tags.iter().cloned()),
    };
    label(directory, !tags.is_empty(), change, common)
}

/// Sets the note of a run or experiment, and prints it.
///
/// # Errors
/// The directory is missing, or labels cannot be read or written.
pub fn note(directory: &Path, text: Option<&str>, common: &Globals) -> Result<Exit, CliError> {
    let change = |labels: &mut Labels| labels.note = text.unwrap_or_default().to_owned();
    label(directory, text.is_some(), change, common)
}

fn label(
    directory: &Path,
    changes: bool,
    change: impl FnOnce(&mut Labels),
    common: &Globals,
) -> Result<Exit, CliError> {
    // Resolve links and trailing slashes: labels are stored next to the real directory.
    let whole = directory.canonicalize().map_err(|error| {
        CliError::environment(format!("cannot find {}: {error}", directory.display()))
    })?;
    let mut labels = Labels::of(&whole).map_err(catalogue::catalogue_error)?;
    if changes {
        change(&mut labels);
        labels.write(&whole).map_err(catalogue::catalogue_error)?;
    }
    let text = match common.json {
        true => bundle::json(&labels)?,
        false => labels_text(labels.tags.iter().map(String::as_str), &labels.note),
    };
    bundle::print(&text).map(|()| Exit::Ok)
}
