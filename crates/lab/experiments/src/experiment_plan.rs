//! An experiment with the plans of its arms, and the published figures with which its runs are
//! compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_judge::tuning::Tuning;
use plimsoll_model::fit::Table as Measured;
use plimsoll_model::spec::{Provenance, Spec};
use plimsoll_plan::TargetKind;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::model_run;

use crate::analysis::{
    self, Analysis, Arm, FittedParameter, Input, OwnParameter, PublishedFigure, Role,
    SearchAnalysis,
};
use crate::definition::{Definition, Overrides, PlannedArm, StorageKind};
use crate::published_figures::parse_figures;
use crate::report::{Surroundings, one_line};
use crate::tables::given_of;

/// A finished run: its arm, number, evidence and verdict.
pub struct CompletedRun {
    pub arm: usize,
    pub number: u32,
    pub evidence: Bundle,
    pub verdict: Verdict,
}

/// Published figures that the operator supplies. No model has used them.
#[derive(Clone, Debug, Default)]
pub struct ExtraFigures {
    /// A file in the format of `published.csv`.
    pub figures: Option<PathBuf>,
    /// Tables for arms of the experiment that are sweeps. Each consists of the arm's name and a
    /// file with the columns that a fit requires.
    pub tables: Vec<(String, String)>,
}

/// An experiment that can be run or analysed.
pub struct ExperimentPlan {
    pub definition: Definition,
    /// Kind of storage on which the experiment's arms run.
    pub on: StorageKind,
    /// The experiment's arms that are runs, not load searches.
    pub arms: Vec<PlannedArm>,
    pub searches: Vec<PlannedArm>,
    /// Published figures, including those that the operator supplied.
    pub given: Vec<PublishedFigure>,
    /// Parameters that were fitted before the experiment's arms ran.
    pub fitted: Vec<FittedParameter>,
}

impl ExperimentPlan {
    /// Plans the experiment's arms. Checks all arms, tables and locations for errors before it
    /// makes the requested fit.
    ///
    /// # Errors An invalid plan, place or published figure, or a model that cannot be fitted.
    pub fn new(
        definition: Definition,
        on: StorageKind,
        mut overrides: Overrides,
        further: &ExtraFigures,
        listener: &mut dyn Listener,
    ) -> Result<Self, RunnerError> {
        let given = published(&definition, &definition.arms(on, &overrides)?, further)?;
        are_there(&overrides)?;
        let fitted = fit(&definition, on, listener)?;
        overrides.fitted = fitted.iter().map(|one| (one.path.clone(), one.value)).collect();
        let arms = definition.arms(on, &overrides)?;
        let searches = definition.searches(on, &overrides)?;
        Ok(Self { definition, on, arms, searches, given, fitted })
    }

    /// Analyses the runs that have completed so far.
    pub fn analyse(&self, runs: &[CompletedRun], searched: &[SearchAnalysis]) -> Analysis {
        let text = &self.definition.text;
        let arm = |(at, planned): (usize, &PlannedArm)| {
            let mut of: Vec<&CompletedRun> = runs.iter().filter(|ran| ran.arm == at).collect();
            of.sort_by_key(|ran| ran.number);
            Arm {
                name: planned.name.clone(),
                title: planned.of.title.clone(),
                group: group(planned),
                servers: planned.servers,
                changes: planned.changes.clone(),
                expects: planned.of.expects,
                caught_by: planned.of.caught_by.clone(),
                runs: of.into_iter().map(|ran| (&ran.evidence, &ran.verdict)).collect(),
                planned: planned.repeats,
            }
        };
        let known = |name: &String| self.arms.iter().any(|arm| arm.name == *name);
        let modelled = self.on == StorageKind::Model;
        analysis::analyse(&Input {
            name: self.definition.files.name.clone(),
            title: text.title.clone(),
            modelled,
            tolerance: text.tolerance,
            judged: text.judged.clone(),
            reference: text.reference.clone().filter(known),
            cumulative: text.cumulative,
            arms: self.arms.iter().enumerate().map(arm).collect(),
            given: if modelled { self.given.clone() } else { Vec::new() },
            questions: text.question.clone(),
            claims: text.claim.clone(),
            goals: if modelled { text.goal.clone() } else { Vec::new() },
            arithmetic: if modelled { self.definition.arithmetic() } else { Vec::new() },
            fitted: self.fitted.clone(),
            inputs: if modelled { text.inputs.clone() } else { Vec::new() },
            own_parameters: self.own_parameters(),
            panels: if modelled { text.panel.clone() } else { Vec::new() },
            searches: self.searches.iter().map(|search| of_search(search, searched)).collect(),
        })
    }

    /// Returns the parameters that all arms of the experiment on a model set. Parameters that were
    /// fitted before the runs are omitted.
    fn own_parameters(&self) -> Vec<OwnParameter> {
        let mut sets: BTreeMap<&str, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
        for arm in self.arms.iter().chain(&self.searches) {
            if let Some(TargetKind::Model { model, set }) = model_run::target_model(&arm.resolved) {
                sets.entry(model).or_default().push(set);
            }
        }
        let of_model = |(model, sets): (&str, Vec<&BTreeMap<String, String>>)| {
            let paths = sets.first().map_or(Vec::new(), |first| first.keys().collect());
            let set_by_all = |path: &&String| {
                sets.iter().all(|set| set.contains_key(*path))
                    && !self.fitted.iter().any(|fitted| fitted.path == **path)
            };
            let own = |path: &String| {
                let mut values: Vec<String> = Vec::new();
                for value in sets.iter().filter_map(|set| set.get(path)) {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
                OwnParameter { model: model.to_owned(), path: path.clone(), values }
            };
            paths.into_iter().filter(set_by_all).map(own).collect::<Vec<_>>()
        };
        sets.into_iter().flat_map(of_model).collect()
    }

    /// Returns the texts of the report, in addition to the figures.
    pub fn surroundings(&self, runs: &[CompletedRun]) -> Surroundings {
        let text = &self.definition.text;
        let mut identity = Vec::new();
        let models: BTreeSet<String> = self.arms.iter().filter_map(model_of).collect();
        if self.on == StorageKind::Model {
            let names: Vec<&str> = models.iter().map(String::as_str).collect();
            identity.push(("models".to_owned(), names.join(", ")));
        }
        let seeds: BTreeSet<u64> = self.arms.iter().map(|arm| arm.resolved.seed).collect();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        identity.push(("seed".to_owned(), seeds.join(", ")));
        identity.push(("runs".to_owned(), runs.len().to_string()));
        identity.push(("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        let about = match self.on {
            StorageKind::Real if !text.real_about.is_empty() => &text.real_about,
            _ => &text.about,
        };
        Surroundings {
            about: one_line(about),
            source: text.source.clone(),
            taught: text.taught.clone(),
            fitted: models.iter().flat_map(|model| fitted(model)).collect(),
            remarks: if self.on == StorageKind::Model { text.remarks.clone() } else { Vec::new() },
            identity,
        }
    }
}

/// Returns a search and its result; the result is `None` if the search has not run.
pub(crate) fn search_analysis(planned: &PlannedArm, found: Option<Tuning>) -> SearchAnalysis {
    SearchAnalysis {
        name: planned.name.clone(),
        title: planned.of.title.clone(),
        servers: planned.servers,
        load_name: planned.of.search.as_ref().and_then(|search| search.load.clone()),
        found,
    }
}

fn of_search(planned: &PlannedArm, searched: &[SearchAnalysis]) -> SearchAnalysis {
    let known = searched.iter().find(|search| search.name == planned.name);
    known.cloned().unwrap_or_else(|| search_analysis(planned, None))
}

/// The points of an arm of the experiment that is a sweep form a separate table.
fn group(planned: &PlannedArm) -> String {
    match (&planned.of.group, planned.name == planned.of.name) {
        (group, true) => group.clone(),
        (group, false) if group.is_empty() => planned.of.name.clone(),
        (group, false) => group.clone(),
    }
}

fn model_of(arm: &PlannedArm) -> Option<String> {
    match model_run::target_model(&arm.resolved)? {
        TargetKind::Model { model, .. } => Some(model.clone()),
        _ => None,
    }
}

/// Returns two lists of model parameters: those that were fitted, and those that are assumed
/// because they are not documented.
fn fitted(model: &str) -> Vec<(String, String)> {
    let Ok(spec) = Spec::load(model) else { return Vec::new() };
    let facts = spec.facts();
    let named = facts.into_iter().filter_map(|(path, fact)| {
        let word = match fact.from {
            Provenance::Fitted => "fitted",
            Provenance::Assumed => "assumed",
            _ => return None,
        };
        let note = if fact.note.is_empty() { String::new() } else { format!(": {}", fact.note) };
        Some((format!("{} {path}", spec.name), format!("{word}{note}")))
    });
    let mut all: Vec<_> = named.collect();
    all.sort_by_key(|(_, from)| !from.starts_with("fitted"));
    all
}

/// Fits the free parameters of a model before the experiment's arms run.
fn fit(
    definition: &Definition,
    on: StorageKind,
    listener: &mut dyn Listener,
) -> Result<Vec<FittedParameter>, RunnerError> {
    let Some(requested) = definition.text.fit.as_ref().filter(|_| on == StorageKind::Model) else {
        return Ok(Vec::new());
    };
    listener
        .say(&format!("fitting {} to the published table of {}", requested.model, requested.arm));
    definition.fit()
}

/// Checks before the first run that all locations on this host exist. Otherwise a missing path
/// would stop a later arm.
fn are_there(overrides: &Overrides) -> Result<(), RunnerError> {
    if overrides.on_hosts {
        return Ok(());
    }
    for (place, path) in overrides.places.iter().filter(|(_, path)| !path.contains("://")) {
        std::fs::metadata(path).map_err(|error| {
            RunnerError::usage(format!("place {place}: {path}: {error}"))
                .hint("check the path, and that the file system is mounted")
        })?;
    }
    Ok(())
}

/// Returns the published figures, including those that the operator supplied.
fn published(
    definition: &Definition,
    planned: &[PlannedArm],
    further: &ExtraFigures,
) -> Result<Vec<PublishedFigure>, RunnerError> {
    let mut all = definition.published(planned);
    let mut kept = Vec::new();
    for (arm, path) in &further.tables {
        let points: Vec<&PlannedArm> = planned.iter().filter(|one| one.of.name == *arm).collect();
        if points.is_empty() {
            return Err(RunnerError::usage(format!("the experiment has no arm {arm}")));
        }
        let wrong = |error: &dyn std::fmt::Display| RunnerError::usage(format!("{path}: {error}"));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let measured = Measured::parse(&text).map_err(|error| wrong(&error))?;
        kept.extend(given_of(&measured, &points, Role::Kept, path));
    }
    if let Some(path) = &further.figures {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| RunnerError::usage(format!("cannot read {name}: {error}")))?;
        kept.extend(parse_figures(&name, &text, Role::Kept)?);
    }
    for one in kept {
        all.retain(|known| (&known.arm, &known.figure) != (&one.arm, &one.figure));
        all.push(one);
    }
    Ok(all)
}
