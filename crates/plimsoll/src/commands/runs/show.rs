//! What one run, or the runs of an experiment, say.

use std::path::Path;

use plimsoll_experiments::directory_report;
use plimsoll_report::text;

use crate::commands::bundle;
use crate::common::Common;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges a run, or the bundles of an experiment, again and shows what they say.
///
/// # Errors
/// A bundle that can't be read.
pub fn show(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    if directory_report::is_experiment(directory) {
        let told = directory_report::build_report(directory)?;
        let document = || text::document(&told.document, &bundle::style(common));
        bundle::print(&if common.json { told.json.clone() } else { document() })?;
        bundle::print_custody(&told.together.lines(), common)?;
        // What was found is shown; whether it is to be relied on stands in it.
        return Ok(told.together.apply_doubts(Exit::Ok));
    }
    let loaded = Reader::new().load(directory)?;
    bundle::show(directory, &loaded.bundle, &loaded.verdict, common)?;
    bundle::print_custody(&loaded.custody.lines(), common)?;
    Ok(loaded.display_exit())
}
