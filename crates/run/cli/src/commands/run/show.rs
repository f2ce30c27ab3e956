//! Shows the result of one or several runs of a plan.

use plimsoll_runner::fleet::{is_fleet, read};
use plimsoll_runner::repeat::RepeatedRuns;

use super::fleet;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;

/// Shows the verdict of a single run, or the summary of an experiment.
///
/// # Errors
/// Stdout cannot be written.
pub fn show(repeated: &RepeatedRuns, common: &Globals) -> Result<(), CliError> {
    let RepeatedRuns { finished, experiment, .. } = repeated;
    if let ([only], None) = (&finished[..], experiment) {
        if is_fleet(&only.directory) {
            return fleet::show(&read(&only.directory)?, common);
        }
        return bundle::show(&only.directory, &only.evidence, &only.verdict, common);
    }
    let together = repeated.summary();
    if common.json {
        return bundle::print(&bundle::json(&together)?);
    }
    let mut text = plimsoll_report::experiment(&together, &bundle::style(common));
    for run in finished {
        text.push_str(&format!("report: {}\n", run.directory.join("report.html").display()));
    }
    if let Some(experiment) = experiment {
        text.push_str(&format!("together: {}\n", experiment.report().display()));
    }
    bundle::print(&text)
}
