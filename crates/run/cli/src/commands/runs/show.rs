//! Shows a run or an experiment.

use std::path::Path;

use plimsoll_experiments::directory_report;
use plimsoll_report::text;

use crate::commands::bundle;
use crate::common::Globals;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges a run, or the bundles of an experiment, again, and shows the result.
///
/// # Errors
/// A bundle cannot be read.
pub fn show(directory: &Path, common: &Globals) -> Result<Exit, CliError> {
    if directory_report::is_experiment(directory) {
        let reported = directory_report::build_report(directory)?;
        let document = || text::document(&reported.document, &bundle::style(common));
        bundle::print(&if common.json { reported.json.clone() } else { document() })?;
        bundle::print_custody(&reported.together.lines(), common)?;
        // The exit code is 3 if the printed lines state that some evidence is not confirmed.
        return Ok(reported.together.apply_doubts(Exit::Ok));
    }
    let loaded = Reader::new().load(directory)?;
    bundle::show(directory, &loaded.bundle, &loaded.verdict, common)?;
    bundle::print_custody(&loaded.custody.lines(), common)?;
    Ok(loaded.display_exit())
}
