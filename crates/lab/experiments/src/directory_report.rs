//! Builds the report of a directory of related runs, and judges their bundles again. The runs are
//! repeats, compared arms, a search, a sweep, a published experiment, or the hosts of a fleet.

use std::path::Path;

use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::{experiment, tuning};
use plimsoll_report::document::Document;
use plimsoll_report::{
    comparison_document, experiment_document, fleet_document, stages_csv, stages_document,
    sweep_csv, sweep_document, tuning_csv, tuning_document,
};
use plimsoll_runner::compare::{Exemptions, compare_arms};
use plimsoll_runner::custody::{Reader, RunSet};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::experiment::{FILE, kind_of, range_of};
use plimsoll_runner::fleet;
use plimsoll_runner::render;
use plimsoll_runner::{stages, sweep};

use crate::directory::analyse_again;
use crate::report::analysis_document;

/// Report of an experiment, for display and as JSON.
pub struct DirectoryReport {
    pub document: Document,
    /// JSON for programs.
    pub json: String,
    /// Table of the experiment; `None` if this kind of experiment has no table.
    pub csv: Option<String>,
    /// Bundles of the experiment, and the reasons why their evidence is not confirmed.
    pub together: RunSet,
}

/// Returns true if a directory is an experiment or a fleet's run.
pub fn is_experiment(directory: &Path) -> bool {
    directory.join(FILE).is_file() || fleet::is_fleet(directory)
}

/// Reads and judges an experiment.
///
/// # Errors
/// The directory has no bundles, or one of its bundles cannot be read.
pub fn build_report(directory: &Path) -> Result<DirectoryReport, RunnerError> {
    if fleet::is_fleet(directory) {
        let left = fleet::read(directory)?;
        let document = fleet_document(&left.fleet, &left.verdict, &left.combined, &left.hosts);
        let json = render::json(&left.verdict)?;
        let together = Reader::new().load_all(directory)?;
        return Ok(DirectoryReport { document, json, csv: None, together });
    }
    let kind = kind_of(directory)?;
    match kind {
        ExperimentKind::Published => {
            let again = analyse_again(directory)?;
            let document = analysis_document(&again.analysis, &again.surroundings);
            let json = render::json(&again.analysis)?;
            return Ok(DirectoryReport { document, json, csv: None, together: again.together });
        }
        ExperimentKind::Sweep => {
            let (sweep, together) = sweep::reload(directory)?;
            let (document, json) = (sweep_document(&sweep), render::json(&sweep)?);
            return Ok(DirectoryReport { document, json, csv: Some(sweep_csv(&sweep)), together });
        }
        ExperimentKind::Stages => {
            let (stages, together) = stages::reload(directory)?;
            let (document, json) = (stages_document(&stages), render::json(&stages)?);
            return Ok(DirectoryReport {
                document,
                json,
                csv: Some(stages_csv(&stages)),
                together,
            });
        }
        _ => {}
    }
    let together = Reader::new().load_all(directory)?;
    let runs = together.judged();
    let mut csv = None;
    let (document, json) = match kind {
        ExperimentKind::Compare => {
            let compared = compare_arms(directory, &runs, Exemptions::default())?;
            (comparison_document(&compared), render::json(&compared)?)
        }
        ExperimentKind::Tune => {
            let range = range_of(directory)?;
            let plan = &runs[0].0.plan;
            let tuning = tuning::rejudge(plan, range, &runs).map_err(RunnerError::usage)?;
            csv = Some(tuning_csv(&tuning));
            (tuning_document(&tuning), render::json(&tuning)?)
        }
        _ => {
            let summary = experiment::summarise(&runs);
            (experiment_document(&summary), render::json(&summary)?)
        }
    };
    Ok(DirectoryReport { document, json, csv, together })
}
