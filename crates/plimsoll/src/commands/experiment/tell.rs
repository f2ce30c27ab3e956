//! From the bundles of a published experiment to its story, shown and written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_judge::Verdict;
use plimsoll_judge::story::{self, Arm, Fitted, Given, OwnParameter, SearchStory, Story, Told};
use plimsoll_judge::tuning::Tuning;
use plimsoll_model::spec::{Provenance, Spec};
use plimsoll_plan::TargetKind;
use plimsoll_report::{Surroundings, story_document};

use super::pool::search_story;
use crate::arguments::Common;
use crate::commands::bundle;
use crate::custody::{Loaded, Reader};
use crate::error::CliError;
use crate::exit::Exit;
use crate::modelled;
use crate::published::{Definition, Files, On, Overrides, PlannedArm};

/// Directory of the experiment's files beside its bundles, so that the story can be told again.
pub const FILES: &str = "published";

/// A run that has ended: its arm, number, evidence and verdict.
pub struct Ran {
    /// Which arm.
    pub arm: usize,
    /// Its number in the experiment.
    pub number: u32,
    /// Its evidence.
    pub evidence: Bundle,
    /// Its verdict.
    pub verdict: Verdict,
}

/// An experiment as it is told.
pub struct Telling<'a> {
    /// What it is.
    pub definition: &'a Definition,
    /// Where its arms run.
    pub on: On,
    /// Its arms.
    pub arms: &'a [PlannedArm],
    /// Published figures, those that the operator brought along too.
    pub given: &'a [Given],
    /// What was fitted before.
    pub fitted: &'a [Fitted],
    /// The arms that are searches.
    pub searches: &'a [PlannedArm],
}

impl Telling<'_> {
    /// The story of the runs so far.
    pub fn tell(&self, runs: &[Ran], searched: &[SearchStory]) -> Story {
        let text = &self.definition.text;
        let arm = |(at, planned): (usize, &PlannedArm)| {
            let mut of: Vec<&Ran> = runs.iter().filter(|ran| ran.arm == at).collect();
            of.sort_by_key(|ran| ran.number);
            Arm {
                name: planned.name.clone(),
                title: planned.of.title.clone(),
                group: self.group(planned),
                servers: planned.servers,
                changes: planned.changes.clone(),
                expects: planned.of.expects,
                caught_by: planned.of.caught_by.clone(),
                runs: of.into_iter().map(|ran| (&ran.evidence, &ran.verdict)).collect(),
                planned: planned.repeats,
            }
        };
        let known = |name: &String| self.arms.iter().any(|arm| arm.name == *name);
        let given = if self.on == On::Model { self.given.to_vec() } else { Vec::new() };
        story::tell(&Told {
            name: self.definition.files.name.clone(),
            title: text.title.clone(),
            modelled: self.on == On::Model,
            tolerance: text.tolerance,
            judged: text.judged.clone(),
            reference: text.reference.clone().filter(known),
            cumulative: text.cumulative,
            arms: self.arms.iter().enumerate().map(arm).collect(),
            given,
            questions: text.question.clone(),
            claims: text.claim.clone(),
            goals: if self.on == On::Model { text.goal.clone() } else { Vec::new() },
            arithmetic: if self.on == On::Model {
                self.definition.arithmetic()
            } else {
                Vec::new()
            },
            fitted: self.fitted.to_vec(),
            inputs: if self.on == On::Model { text.inputs.clone() } else { Vec::new() },
            own_parameters: self.own_parameters(),
            panels: if self.on == On::Model { text.panel.clone() } else { Vec::new() },
            searches: self.searches.iter().map(|search| self.search(search, searched)).collect(),
        })
    }

    /// Parameters that all arms on a model set, and that were not fitted before they ran.
    fn own_parameters(&self) -> Vec<OwnParameter> {
        let mut sets: BTreeMap<&str, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
        for arm in self.arms.iter().chain(self.searches) {
            if let Some(TargetKind::Model { model, set }) = modelled::named(&arm.resolved) {
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

    /// What a search found, or that it was not carried out yet.
    fn search(&self, planned: &PlannedArm, searched: &[SearchStory]) -> SearchStory {
        let known = searched.iter().find(|search| search.name == planned.name);
        known.cloned().unwrap_or_else(|| search_story(planned, None))
    }

    /// The points of an arm that sweeps are a table of their own.
    fn group(&self, planned: &PlannedArm) -> String {
        match (&planned.of.group, planned.name == planned.of.name) {
            (group, true) => group.clone(),
            (group, false) if group.is_empty() => planned.of.name.clone(),
            (group, false) => group.clone(),
        }
    }

    /// What stands around the story in its report.
    pub fn around(&self, runs: &[Ran]) -> Surroundings {
        let text = &self.definition.text;
        let mut identity = Vec::new();
        let models: BTreeSet<String> = self.arms.iter().filter_map(model_of).collect();
        if self.on == On::Model {
            let names: Vec<&str> = models.iter().map(String::as_str).collect();
            identity.push(("models".to_owned(), names.join(", ")));
        }
        let seeds: BTreeSet<u64> = self.arms.iter().map(|arm| arm.resolved.seed).collect();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        identity.push(("seed".to_owned(), seeds.join(", ")));
        identity.push(("runs".to_owned(), runs.len().to_string()));
        identity.push(("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        let about = match self.on {
            On::Real if !text.real_about.is_empty() => &text.real_about,
            _ => &text.about,
        };
        Surroundings {
            about: one_line(about),
            source: text.source.clone(),
            taught: text.taught.clone(),
            fitted: models.iter().flat_map(|model| fitted(model)).collect(),
            remarks: if self.on == On::Model { text.remarks.clone() } else { Vec::new() },
            identity,
        }
    }
}

fn model_of(arm: &PlannedArm) -> Option<String> {
    match modelled::named(&arm.resolved)? {
        TargetKind::Model { model, .. } => Some(model.clone()),
        _ => None,
    }
}

/// A text of several lines as one paragraph.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parameters of a model that a fit moved or that nobody documents.
fn fitted(model: &str) -> Vec<(String, String)> {
    let Ok(spec) = Spec::load(model) else { return Vec::new() };
    let facts = spec.facts();
    let told = facts.into_iter().filter_map(|(path, fact)| {
        let word = match fact.from {
            Provenance::Fitted => "fitted",
            Provenance::Assumed => "assumed",
            _ => return None,
        };
        let note = if fact.note.is_empty() { String::new() } else { format!(": {}", fact.note) };
        Some((format!("{} {path}", spec.name), format!("{word}{note}")))
    });
    let mut all: Vec<_> = told.collect();
    all.sort_by_key(|(_, from)| !from.starts_with("fitted"));
    all
}

/// Tells the story of an experiment's directory again, from its bundles.
///
/// # Errors
/// A directory without its files or bundles.
pub fn show_again(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    let definition = Definition::read(of_directory(directory)?)?;
    let together = Reader::new().load_all(directory)?;
    let real = together.runs.iter().any(|run| run.bundle.observed.inside.is_none());
    let on = if real { On::Real } else { On::Model };
    // Where it ran is in the bundles; any word will do for the places here.
    let arms = match on {
        On::Model => &definition.text.arm,
        On::Real => &definition.text.real,
    };
    let place = |name: &String| (name.clone(), "/".to_owned());
    let places = arms.iter().flat_map(|arm| &arm.places).map(place).collect();
    let overrides = Overrides { places, ..Overrides::default() };
    let planned = definition.arms(on, &overrides)?;
    let searches = definition.searches(on, &overrides)?;
    let ran = of_bundles(&planned, &together.runs);
    let mut given = definition.given.clone();
    given.extend(definition.given_by_tables(&planned));
    let told: Option<Story> = crate::experiment::result_of(directory).ok();
    let fitted = told.map_or_else(Vec::new, |story| story.fitted);
    let telling = Telling {
        definition: &definition,
        on,
        arms: &planned,
        given: &given,
        fitted: &fitted,
        searches: &searches,
    };
    let story = telling.tell(&ran, &searched_in(directory, &searches));
    show(&story, &telling.around(&ran), common)?;
    bundle::print_custody(&together.lines(), common)?;
    Ok(together.weigh(Exit::Ok))
}

/// The searches that an experiment's directory holds.
pub fn searched_in(directory: &Path, searches: &[PlannedArm]) -> Vec<SearchStory> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found: Vec<Tuning> = entries
        .filter_map(|entry| crate::experiment::result_of::<Tuning>(&entry.path()).ok())
        .filter(|tuning| tuning.complete)
        .collect();
    let one = |search: &PlannedArm| {
        let own = found.iter().find(|tuning| tuning.name == search.resolved.name)?;
        Some(search_story(search, Some(own.clone())))
    };
    searches.iter().filter_map(one).collect()
}

/// The files of an experiment that was run, under the name that it had.
///
/// # Errors
/// They are not there.
pub fn of_directory(directory: &Path) -> Result<Files, CliError> {
    let mut files = Files::read(&directory.join(FILES))?;
    if let Some(name) = files.texts.remove("name.toml")
        && let Ok(table) = name.parse::<toml::Table>()
        && let Some(name) = table.get("name").and_then(|name| name.as_str())
    {
        files.name = name.to_owned();
    }
    Ok(files)
}

/// Writes an experiment's files beside its bundles.
///
/// # Errors
/// A file that can't be written.
pub fn write_files(definition: &Definition, directory: &Path) -> Result<(), CliError> {
    let mut files = definition.files.clone();
    let name = toml::Value::String(files.name.clone());
    files.texts.insert("name.toml".to_owned(), format!("name = {name}\n"));
    files.write(&directory.join(FILES))
}

/// Bundles of an experiment by the arms that they are of; those of other arms are left out.
pub fn of_bundles(arms: &[PlannedArm], runs: &[Loaded]) -> Vec<Ran> {
    let mut all = Vec::new();
    for Loaded { bundle: evidence, verdict, .. } in runs {
        let Some(place) = &evidence.run.experiment else { continue };
        let Some(arm) = arms.iter().position(|arm| arm.name == place.arm) else { continue };
        if evidence.run.end.kind == EndKind::Completed {
            let (number, evidence, verdict) = (place.number, evidence.clone(), verdict.clone());
            all.push(Ran { arm, number, evidence, verdict });
        }
    }
    all
}

/// Shows a story.
///
/// # Errors
/// Stdout that can't be written.
pub fn show(story: &Story, around: &Surroundings, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(story)?);
    }
    let document = story_document(story, around);
    bundle::print(&plimsoll_report::text::document(&document, &bundle::style(common)))
}
