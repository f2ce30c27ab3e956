//! Layout of an experiment's directory. The directory contains the experiment's files next to the
//! bundles, so that the results can be analysed again.

use std::path::Path;

use plimsoll_evidence::run::EndKind;
use plimsoll_judge::tuning::Tuning;
use plimsoll_runner::custody::{LoadedBundle, Reader, RunSet};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::experiment::result_of;

use crate::analysis::{Analysis, SearchAnalysis};
use crate::definition::{Definition, Overrides, PlannedArm, StorageKind};
use crate::experiment_plan::{CompletedRun, ExperimentPlan, search_analysis};
use crate::files::Files;
use crate::report::Surroundings;

/// Name of the directory with the experiment's files, next to the bundles.
pub const FILES: &str = "published";
/// Name of the file that contains the experiment's name.
const NAME: &str = "name.toml";

/// Result of analysing an experiment's directory again.
pub struct Reanalysis {
    /// Analysis of the runs.
    pub analysis: Analysis,
    /// Texts of the report, in addition to the figures.
    pub surroundings: Surroundings,
    /// Bundles of the experiment, and the reasons why their evidence is not confirmed.
    pub together: RunSet,
}

/// Analyses an experiment's directory again, from its bundles.
///
/// # Errors
/// The directory lacks its files or bundles.
pub fn analyse_again(directory: &Path) -> Result<Reanalysis, RunnerError> {
    let definition = Definition::read(files_of(directory)?)?;
    let together = Reader::new().load_all(directory)?;
    let real = together.runs.iter().any(|run| run.bundle.observed.inside.is_none());
    let on = if real { StorageKind::Real } else { StorageKind::Model };
    // The bundles record the location that was used, so any value can be used here.
    let arms = match on {
        StorageKind::Model => &definition.text.arm,
        StorageKind::Real => &definition.text.real,
    };
    let place = |name: &String| (name.clone(), "/".to_owned());
    let places = arms.iter().flat_map(|arm| &arm.places).map(place).collect();
    let overrides = Overrides { places, ..Overrides::default() };
    let arms = definition.arms(on, &overrides)?;
    let searches = definition.searches(on, &overrides)?;
    let ran = of_bundles(&arms, &together.runs);
    let given = definition.published(&arms);
    let before: Option<Analysis> = result_of(directory).ok();
    let fitted = before.map_or_else(Vec::new, |before| before.fitted);
    let planned = ExperimentPlan { definition, on, arms, searches, given, fitted };
    let analysis = planned.analyse(&ran, &searched(directory, &planned.searches));
    let surroundings = planned.surroundings(&ran);
    Ok(Reanalysis { analysis, surroundings, together })
}

/// Returns the planned load searches whose complete results are in an experiment's directory.
pub(crate) fn searched(directory: &Path, searches: &[PlannedArm]) -> Vec<SearchAnalysis> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found: Vec<Tuning> = entries
        .filter_map(|entry| result_of::<Tuning>(&entry.path()).ok())
        .filter(|tuning| tuning.complete)
        .collect();
    let one = |search: &PlannedArm| {
        let own = found.iter().find(|tuning| tuning.name == search.resolved.name)?;
        Some(search_analysis(search, Some(own.clone())))
    };
    searches.iter().filter_map(one).collect()
}

/// Returns the files and the name of an experiment that was run.
///
/// # Errors
/// The directory does not contain an experiment's files.
pub(crate) fn files_of(directory: &Path) -> Result<Files, RunnerError> {
    let mut files = Files::read(&directory.join(FILES))?;
    if let Some(name) = files.texts.remove(NAME)
        && let Ok(table) = name.parse::<toml::Table>()
        && let Some(name) = table.get("name").and_then(|name| name.as_str())
    {
        files.name = name.to_owned();
    }
    Ok(files)
}

/// Writes an experiment's files next to its bundles.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_files(definition: &Definition, directory: &Path) -> Result<(), RunnerError> {
    let mut files = definition.files.clone();
    let name = toml::Value::String(files.name.clone());
    files.texts.insert(NAME.to_owned(), format!("name = {name}\n"));
    files.write(&directory.join(FILES))
}

/// Returns the bundles of the given arms of an experiment.
pub(crate) fn of_bundles(arms: &[PlannedArm], runs: &[LoadedBundle]) -> Vec<CompletedRun> {
    let mut all = Vec::new();
    for LoadedBundle { bundle: evidence, verdict, .. } in runs {
        let Some(place) = &evidence.run.experiment else { continue };
        let Some(arm) = arms.iter().position(|arm| arm.name == place.arm) else { continue };
        if evidence.run.end.kind == EndKind::Completed {
            let (number, evidence, verdict) = (place.number, evidence.clone(), verdict.clone());
            all.push(CompletedRun { arm, number, evidence, verdict });
        }
    }
    all
}
