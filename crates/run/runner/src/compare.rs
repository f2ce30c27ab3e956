//! Reads the sides of a comparison, names them, and compares them.
//!
//! A side of the comparison is an experiment, a run, or a directory of bundles. [`sweeps`] compares
//! sweeps cell by cell.

pub mod sweeps;

use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::Verdict;
use plimsoll_judge::compare::{Comparison, Side, compare};
use plimsoll_plan::Plan;

use crate::custody::{LoadedBundle, Reader, RunSet};
use crate::error::RunnerError;
use crate::experiment::FILE;
use crate::fleet;

/// Conditions that may differ between the sides of the comparison. Such a difference does not
/// prevent a winner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exemptions<'a> {
    /// Conditions that the user accepted as different.
    pub accept: &'a [String],
    /// Conditions whose effect the comparison measures.
    pub factors: &'a [String],
}

/// A side of the comparison as named on the command line.
#[derive(Clone, Debug)]
pub struct NamedSide {
    /// Name of the side of the comparison in the report. `None` if the user chose no name.
    pub name: Option<String>,
    pub argument: String,
    /// Directory that contains the side's bundles.
    pub directory: PathBuf,
}

/// Returns the subdirectories that are experiments or contain bundles.
pub fn bundle_directories(directory: &Path) -> Vec<PathBuf> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let is_bundle = |path: &PathBuf| path.join("run.json").is_file() || fleet::is_fleet(path);
    let holds = |path: &PathBuf| !is_bundle(path) && directories(path).iter().any(is_bundle);
    directories(directory).into_iter().filter(holds).collect()
}

/// Reads the runs of a side of the comparison, and rejects evidence that contradicts itself. For a
/// directory of experiments, reads the runs of all of these.
///
/// # Errors
/// The directory has no bundles, or has an unreliable bundle.
pub fn read_side(reader: &Reader, directory: &Path) -> Result<RunSet, RunnerError> {
    let mut run_set = reader.load_any(directory)?;
    if run_set.runs.is_empty() {
        for within in bundle_directories(directory) {
            let more = reader.load_all(&within)?;
            run_set.runs.extend(more.runs);
            run_set.doubts.extend(more.doubts);
            run_set.remarks.extend(more.remarks);
        }
        run_set.runs.sort_by_key(|run| run.bundle.run.started_unix_ns);
    }
    if run_set.runs.is_empty() {
        // Returns the error that lists what can be a side of a comparison.
        return reader.load_all(directory);
    }
    run_set.refuse_contradictions()?;
    Ok(run_set)
}

/// Compares the arms of an experiment that ran several targets alternately.
///
/// # Errors
/// The runs are not assigned to the sides of the comparison.
pub fn compare_arms(
    directory: &Path,
    judged: &[(&Bundle, &Verdict)],
    accepted: Exemptions<'_>,
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
        let says = format!(
            "{} is only one side of a comparison, but a comparison needs two sides",
            directory.display()
        );
        return Err(RunnerError::usage(says).hint("specify both: plimsoll compare A B"));
    }
    // The sides of the comparison are listed in the order of the plan, not in the order of the
    // runs.
    let plan = Plan::parse(&judged[0].0.plan_text, "plan.toml").map(|plan| plan.resolve());
    let (order, planned): (Vec<String>, usize) = plan.map_or((Vec::new(), usize::MAX), |plan| {
        let names = plan.targets.into_iter().map(|target| target.name).collect();
        (names, plan.repeat.runs.max(1) as usize)
    });
    let names = if order.len() == names.len() { order } else { names };
    let side = |name: String| {
        let of = judged.iter().filter(|(bundle, _)| arm(bundle).as_ref() == Some(&name));
        Side { runs: of.copied().collect(), name }
    };
    Ok(compare_runs_of_arms(names.into_iter().map(side).collect(), planned, accepted))
}

/// Compares arms. If an arm has all `planned` runs, its incomplete runs were repeated. Incomplete
/// runs are then listed, but not compared.
pub(crate) fn compare_runs_of_arms(
    mut sides: Vec<Side<'_>>,
    planned: usize,
    accepted: Exemptions<'_>,
) -> Comparison {
    let mut repeated = Vec::new();
    for side in &mut sides {
        let is_completed = |bundle: &Bundle| bundle.run.end.kind == EndKind::Completed;
        if side.runs.iter().filter(|(bundle, _)| is_completed(bundle)).count() < planned {
            continue;
        }
        for (bundle, _) in side.runs.extract_if(.., |(bundle, _)| !is_completed(bundle)) {
            let (run, says) = (&bundle.run.run_id, &bundle.run.end.says);
            repeated.push(format!(
                "{}: run {run} is excluded: it did not complete, and was repeated: {says}",
                side.name
            ));
        }
    }
    let mut compared = compare(&sides, accepted.accept, accepted.factors);
    compared.remarks.extend(repeated);
    compared
}

/// Compares two or more experiments or runs.
///
/// # Errors
/// A side of the comparison cannot be read, a side is a search, or two sides have the same name.
pub fn compare_sides(
    reader: &Reader,
    named_sides: &[NamedSide],
    accepted: Exemptions<'_>,
) -> Result<(Comparison, Vec<RunSet>), RunnerError> {
    let mut all: Vec<RunSet> = Vec::new();
    for one in named_sides {
        let side = read_side(reader, &one.directory)?;
        let searched = |run: &LoadedBundle| {
            run.bundle.run.experiment.as_ref().is_some_and(|e| e.kind == ExperimentKind::Tune)
        };
        if side.runs.len() > 1 && side.runs.iter().any(searched) {
            let name = &one.argument;
            let says =
                format!("the runs of {name} are steps of a search, each at a different load");
            return Err(RunnerError::usage(says)
                .hint("compare runs that have the same plan and the same load"));
        }
        all.push(side);
    }
    let plans: Vec<String> = all.iter().map(|side| side.runs[0].bundle.run.name.clone()).collect();
    let name_pairs: Vec<(Option<&str>, &str)> =
        named_sides.iter().map(|one| (one.name.as_deref(), one.argument.as_str())).collect();
    let names = side_names(&name_pairs, &plans)?;
    let sides: Vec<Side<'_>> =
        all.iter().zip(names).map(|(side, name)| Side { name, runs: side.judged() }).collect();
    let mut compared = compare(&sides, accepted.accept, accepted.factors);
    for (side, one) in compared.names.iter().zip(named_sides) {
        if *side != one.argument {
            compared.remarks.push(format!("{side} stands for {}.", one.argument));
        }
    }
    Ok((compared, all))
}

/// Splits an argument `NAME=SIDE` into name and side. If it does not begin with a valid name, the
/// whole argument is the side.
pub fn parse_side(side: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+');
        !name.is_empty() && name.chars().all(letter)
    };
    match side.split_once('=') {
        Some((name, side)) if is_name(name) && !side.is_empty() => (Some(name), side),
        _ => (None, side),
    }
}

/// Returns the names of the sides of the comparison: the user's names, or otherwise plan names,
/// directory names, or letters. Uses the first kind of name that differs between the sides.
fn side_names(
    name_pairs: &[(Option<&str>, &str)],
    plans: &[String],
) -> Result<Vec<String>, RunnerError> {
    let distinct = |names: &[String]| {
        names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1)
    };
    let base =
        |side: &str| side.trim_end_matches('/').rsplit('/').next().unwrap_or(side).to_owned();
    let places: Vec<String> = name_pairs.iter().map(|(_, side)| base(side)).collect();
    let letters: Vec<String> = ('A'..='Z').map(String::from).take(name_pairs.len()).collect();
    if letters.len() < name_pairs.len() {
        return Err(RunnerError::usage("too many sides: at most 26 can be compared"));
    }
    let otherwise = if distinct(plans) {
        plans
    } else if distinct(&places) {
        &places[..]
    } else {
        &letters[..]
    };
    let names =
        name_pairs.iter().zip(otherwise).map(|((name, _), other)| name.unwrap_or(other).to_owned());
    let names: Vec<String> = names.collect();
    match distinct(&names) {
        true => Ok(names),
        false => {
            Err(RunnerError::usage(format!("two sides have the same name: {}", names.join(", ")))
                .hint("give each side its own name: old=A new=B"))
        }
    }
}

/// Compares the parts of one directory: its arms, the subdirectories with repeats, or the runs of
/// each plan.
///
/// # Errors
/// There are fewer than two sides, or a side of the comparison cannot be read.
pub fn compare_within(
    directory: &Path,
    accepted: Exemptions<'_>,
) -> Result<(Comparison, Vec<RunSet>), RunnerError> {
    if !directory.join(FILE).is_file() && !directory.join("run.json").is_file() {
        let mut within = bundle_directories(directory);
        if within.len() > 1 {
            within.sort();
            let named_sides: Vec<NamedSide> = within.into_iter().map(subdirectory_side).collect();
            return compare_sides(&Reader::new(), &named_sides, accepted);
        }
    }
    let run_set = read_side(&Reader::new(), directory)?;
    let judged = run_set.judged();
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
        compare(&sides, accepted.accept, accepted.factors)
    } else {
        compare_arms(directory, &judged, accepted)?
    };
    Ok((compared, vec![run_set]))
}

/// Returns a side of the comparison that is named after its subdirectory.
fn subdirectory_side(directory: PathBuf) -> NamedSide {
    let argument = directory.display().to_string();
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    NamedSide { name, argument, directory }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_called_as_was_said_or_by_what_tells_them_apart() {
        let names = |named_sides: &[&str], plans: &[&str]| {
            let named_sides: Vec<_> = named_sides.iter().map(|side| parse_side(side)).collect();
            let plans: Vec<String> = plans.iter().map(|plan| (*plan).to_owned()).collect();
            side_names(&named_sides, &plans).map_err(|error| error.message)
        };
        let ok = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names(&["old=x/1", "new=x/2"], &["p", "p"]), ok(&["old", "new"]));
        assert_eq!(names(&["x/1", "x/2"], &["p", "q"]), ok(&["p", "q"]));
        assert_eq!(names(&["x/before/", "y/after"], &["p", "p"]), ok(&["before", "after"]));
        assert_eq!(names(&["x/1", "y/1"], &["p", "p"]), ok(&["A", "B"]));
        assert!(names(&["a=x/1", "a=x/2"], &["p", "p"]).is_err());
        // "./a" is not a valid name, so all of it is a path.
        assert_eq!(parse_side("./a=b"), (None, "./a=b"));
    }
}
