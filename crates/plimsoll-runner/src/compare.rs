//! Sides of a comparison: how they are read, what they are called, and what they say of each other.
//!
//! A side is an experiment, a run, or a directory that holds bundles; [`sweeps`] compares sweeps cell by cell.

pub mod sweeps;

use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::Verdict;
use plimsoll_judge::compare::{Comparison, Side, compare_for};
use plimsoll_plan::Plan;

use crate::custody::{Loaded, Reader, Together};
use crate::error::RunnerError;
use crate::experiment::FILE;
use crate::fleet;

/// Differences that no winner is withheld for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken<'a> {
    /// They were accepted.
    pub accept: &'a [String],
    /// They are what is asked about.
    pub factors: &'a [String],
}

/// A side as it was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// What it is to be called; `None`: nobody said.
    pub name: Option<String>,
    /// How it was asked for.
    pub called: String,
    /// Where it lies.
    pub directory: PathBuf,
}

/// The directories within one that are bundles' own places: experiments, or directories with bundles in them.
pub fn holding_bundles(directory: &Path) -> Vec<PathBuf> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let is_bundle = |path: &PathBuf| path.join("run.json").is_file() || fleet::is_fleet(path);
    let holds = |path: &PathBuf| !is_bundle(path) && directories(path).iter().any(is_bundle);
    directories(directory).into_iter().filter(holds).collect()
}

/// Reads the runs of a side, and refuses evidence that does not agree with itself. A directory of experiments is
/// all of their runs.
///
/// # Errors
/// A directory without bundles, or with one that can't be relied on.
pub fn read_side(reader: &Reader, directory: &Path) -> Result<Together, RunnerError> {
    let mut together = reader.load_any(directory)?;
    if together.runs.is_empty() {
        for within in holding_bundles(directory) {
            let more = reader.load_all(&within)?;
            together.runs.extend(more.runs);
            together.doubts.extend(more.doubts);
            together.remarks.extend(more.remarks);
        }
        together.runs.sort_by_key(|run| run.bundle.run.started_unix_ns);
    }
    if together.runs.is_empty() {
        // It says what a side has to be.
        return reader.load_all(directory);
    }
    together.refuse_contradictions()?;
    Ok(together)
}

/// The arms of an experiment that ran several targets in turns.
///
/// # Errors
/// A directory whose runs have no arms.
pub fn compare_arms(
    directory: &Path,
    judged: &[(&Bundle, &Verdict)],
    taken: Taken<'_>,
) -> Result<Comparison, RunnerError> {
    let arm = |bundle: &Bundle| {
        let place = bundle.run.experiment.as_ref();
        place.filter(|place| place.kind == ExperimentKind::Compare).map(|place| place.arm.clone())
    };
    let mut names: Vec<String> = Vec::new();
    for name in judged.iter().filter_map(|(bundle, _)| arm(bundle)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() < 2 {
        let says = format!("{} is one side: name another", directory.display());
        return Err(RunnerError::usage(says).hint("plimsoll compare A B"));
    }
    // In the order of the plan, whatever the order in which they were run.
    let planned = Plan::parse(&judged[0].0.plan_text, "plan.toml");
    let order: Vec<String> = planned
        .map(|plan| plan.resolve().targets.into_iter().map(|target| target.name).collect())
        .unwrap_or_default();
    let names = if order.len() == names.len() { order } else { names };
    let side = |name: String| {
        let of = judged.iter().filter(|(bundle, _)| arm(bundle).as_ref() == Some(&name));
        Side { runs: of.copied().collect(), name }
    };
    let sides: Vec<Side<'_>> = names.into_iter().map(side).collect();
    Ok(compare_for(&sides, taken.accept, taken.factors))
}

/// Two or more experiments or runs.
///
/// # Errors
/// A side that can't be read or is a search, two sides of one name.
pub fn compare_sides(
    reader: &Reader,
    given: &[Given],
    taken: Taken<'_>,
) -> Result<(Comparison, Vec<Together>), RunnerError> {
    let mut all: Vec<Together> = Vec::new();
    for one in given {
        let side = read_side(reader, &one.directory)?;
        let searched = |run: &Loaded| {
            run.bundle.run.experiment.as_ref().is_some_and(|e| e.kind == ExperimentKind::Tune)
        };
        if side.runs.len() > 1 && side.runs.iter().any(searched) {
            let name = &one.called;
            let says = format!("the runs of {name} are steps of a search, each with another load");
            return Err(RunnerError::usage(says).hint("compare runs of one plan that are alike"));
        }
        all.push(side);
    }
    let plans: Vec<String> = all.iter().map(|side| side.runs[0].bundle.run.name.clone()).collect();
    let named: Vec<(Option<&str>, &str)> =
        given.iter().map(|one| (one.name.as_deref(), one.called.as_str())).collect();
    let names = names_of(&named, &plans)?;
    let sides: Vec<Side<'_>> =
        all.iter().zip(names).map(|(side, name)| Side { name, runs: side.judged() }).collect();
    let mut compared = compare_for(&sides, taken.accept, taken.factors);
    for (side, one) in compared.names.iter().zip(given) {
        if *side != one.called {
            compared.remarks.push(format!("{side} is {}.", one.called));
        }
    }
    Ok((compared, all))
}

/// A side as it was given: its name, where it has one, and where it lies.
pub fn named(side: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+');
        !name.is_empty() && name.chars().all(letter)
    };
    match side.split_once('=') {
        Some((name, side)) if is_name(name) && !side.is_empty() => (Some(name), side),
        _ => (None, side),
    }
}

/// What the sides are called: as was said, else by their plans where these differ, else by where they lie, else by
/// letters.
fn names_of(named: &[(Option<&str>, &str)], plans: &[String]) -> Result<Vec<String>, RunnerError> {
    let distinct = |names: &[String]| {
        names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1)
    };
    let base =
        |side: &str| side.trim_end_matches('/').rsplit('/').next().unwrap_or(side).to_owned();
    let places: Vec<String> = named.iter().map(|(_, side)| base(side)).collect();
    let letters: Vec<String> = ('A'..='Z').map(String::from).take(named.len()).collect();
    if letters.len() < named.len() {
        return Err(RunnerError::usage("more sides than letters: compare at most 26"));
    }
    let otherwise = if distinct(plans) {
        plans
    } else if distinct(&places) {
        &places[..]
    } else {
        &letters[..]
    };
    let names =
        named.iter().zip(otherwise).map(|((name, _), other)| name.unwrap_or(other).to_owned());
    let names: Vec<String> = names.collect();
    match distinct(&names) {
        true => Ok(names),
        false => Err(RunnerError::usage(format!("two sides have one name: {}", names.join(", ")))
            .hint("give each a name of its own: old=A new=B")),
    }
}

/// One experiment or directory: its arms, its directories of repeats, or its runs by plan.
///
/// # Errors
/// Fewer than two sides, or one that can't be read.
pub fn compare_within(
    directory: &Path,
    taken: Taken<'_>,
) -> Result<(Comparison, Vec<Together>), RunnerError> {
    if !directory.join(FILE).is_file() && !directory.join("run.json").is_file() {
        let mut within = holding_bundles(directory);
        if within.len() > 1 {
            within.sort();
            let given: Vec<Given> = within.into_iter().map(within_one).collect();
            return compare_sides(&Reader::new(), &given, taken);
        }
    }
    let together = read_side(&Reader::new(), directory)?;
    let judged = together.judged();
    let mut plans: Vec<&str> = Vec::new();
    for (bundle, _) in &judged {
        if !plans.contains(&bundle.run.name.as_str()) {
            plans.push(&bundle.run.name);
        }
    }
    let has_arms = judged.iter().any(|(bundle, _)| bundle.run.experiment.is_some());
    let compared = if plans.len() > 1 && !has_arms {
        let side = |plan: &&str| {
            let of = judged.iter().filter(|(bundle, _)| bundle.run.name == **plan);
            Side { name: (*plan).to_owned(), runs: of.copied().collect() }
        };
        let sides: Vec<Side<'_>> = plans.iter().map(side).collect();
        compare_for(&sides, taken.accept, taken.factors)
    } else {
        compare_arms(directory, &judged, taken)?
    };
    Ok((compared, vec![together]))
}

/// A side that lies in the directory that was named: called by its own name.
fn within_one(directory: PathBuf) -> Given {
    let called = directory.display().to_string();
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    Given { name, called, directory }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_called_as_was_said_or_by_what_tells_them_apart() {
        let names = |given: &[&str], plans: &[&str]| {
            let given: Vec<_> = given.iter().map(|side| named(side)).collect();
            let plans: Vec<String> = plans.iter().map(|plan| (*plan).to_owned()).collect();
            names_of(&given, &plans).map_err(|error| error.message)
        };
        let ok = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names(&["old=x/1", "new=x/2"], &["p", "p"]), ok(&["old", "new"]));
        assert_eq!(names(&["x/1", "x/2"], &["p", "q"]), ok(&["p", "q"]));
        assert_eq!(names(&["x/before/", "y/after"], &["p", "p"]), ok(&["before", "after"]));
        assert_eq!(names(&["x/1", "y/1"], &["p", "p"]), ok(&["A", "B"]));
        assert!(names(&["a=x/1", "a=x/2"], &["p", "p"]).is_err());
        // A path with such a sign is a path.
        assert_eq!(named("./a=b"), (None, "./a=b"));
    }
}
