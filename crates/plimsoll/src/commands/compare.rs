//! `plimsoll compare A B…`: experiments side by side; `plimsoll compare PLAN`: the targets of a plan,
//! run in turns.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::Verdict;
use plimsoll_judge::compare::{Comparison, Side, compare_for};
use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_plan::Plan;
use plimsoll_report::comparison_document;

use super::after::After;
use super::sides::{Taken, exit_of, read_side, show, tell_custody};
use super::{bundle, compare_sweeps, sides};
use crate::common::Common;
use crate::custody::{Loaded, Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::FILE;
use crate::interrupt;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll compare EXPERIMENT-A EXPERIMENT-B\n  plimsoll compare old=12 \
    new=last --factor mount-options\n  plimsoll compare before/ after/ --accept kernel\n  plimsoll compare \
    firmware/\n  plimsoll compare ext4-against-btrfs.toml\n  plimsoll compare SWEEP-A SWEEP-B --html \
    cells.html\n\nA side is an experiment or run as `plimsoll runs` lists it, or a directory that holds bundles; \
    NAME=SIDE names it. One directory is compared within itself: its directories of repeats, or its runs by \
    plan. A plan that names several targets is run: each target in turn, in random order. Two sweeps are \
    compared cell by cell; a directory with several sweeps of one plan is one side.\nExit code 3: conditions \
    differ that were not accepted, so no winner is called."
)]
pub struct Options {
    /// Experiments, runs or directories of bundles; or one plan with several targets.
    #[arg(required = true, value_name = "SIDE")]
    sides: Vec<String>,
    /// Accept that this condition differs, as the comparison names it: `kernel`, or `plan` for all
    /// differences of the plans. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    accept: Vec<String>,
    /// What is asked about, as the comparison names it: `mount-options`. Only other differences are unlike
    /// conditions then. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    factor: Vec<String>,
    /// Run a plan although it asks for fewer runs a side than a difference can be told by.
    #[arg(long)]
    few: bool,
    /// Write the report as a page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A block device that the plan names and whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment of a plan in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Compares.
///
/// # Errors
/// A side that is not there, fewer than two of them, a plan that cannot be run.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let (compared, read) = match &options.sides[..] {
        [plan] if Path::new(plan).is_file() => return run_plan(Path::new(plan), options, common),
        [one] => compare_within(one, options)?,
        several => {
            let named: Vec<(Option<&str>, &str)> = several.iter().map(|side| named(side)).collect();
            let found: Vec<String> = named.iter().map(|(_, side)| (*side).to_owned()).collect();
            let taken = [&options.accept[..], &options.factor[..]].concat();
            if let Some(compared) = compare_sweeps::compare_named(&found, &taken)? {
                return compare_sweeps::told(&compared, options.html.as_deref(), common);
            }
            compare_sides(&named, options)?
        }
    };
    if let Some(path) = &options.html {
        let page = bundle::document_html(&comparison_document(&compared))?;
        std::fs::write(path, page).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    show(&compared, common)?;
    tell_custody(&read, common)?;
    Ok(read.iter().fold(exit_of(&compared), |exit, side| side.weigh(exit)))
}

/// Runs the targets of a plan in turns.
fn run_plan(path: &Path, options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = super::plan::load(path)?;
    if plan.resolve().targets.len() < 2 {
        let says = format!("{} names one target: there is nothing to compare", path.display());
        return Err(CliError::usage(says).hint("name several, each as [[target]] with a name"));
    }
    let runs = plan.resolve().repeat.runs as usize;
    if runs < RUNS_MIN && !options.few {
        let says = format!(
            "{} runs each target {}: no difference can be told from noise by fewer than {RUNS_MIN} runs of each",
            path.display(),
            if runs == 1 { "once".to_owned() } else { format!("{runs} times") }
        );
        return Err(CliError::usage(says)
            .hint(format!("set `[repeat] runs = {RUNS_MIN}`, or more"))
            .hint("--few runs it all the same: verdicts against a requirement need no more"));
    }
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let (out, destroy) = (options.out.clone(), options.destroy.clone());
    let sign = options.sign.clone();
    let after = After { out, destroy, sign, ..After::default() };
    let taken = Taken { accept: &options.accept, factors: &options.factor };
    super::arms::run_arms_for(&plan, &after, taken, common, &mut progress, &interrupt)
}

/// The arms of an experiment that ran several targets in turns.
///
/// # Errors
/// A directory whose runs have no arms.
pub fn compare_arms(
    directory: &Path,
    judged: &[(&Bundle, &Verdict)],
    taken: Taken<'_>,
) -> Result<Comparison, CliError> {
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
        return Err(CliError::usage(says).hint("plimsoll compare A B"));
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

/// A side as it was given: its name, where it has one, and where it lies.
fn named(side: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+');
        !name.is_empty() && name.chars().all(letter)
    };
    match side.split_once('=') {
        Some((name, side)) if is_name(name) && !side.is_empty() => (Some(name), side),
        _ => (None, side),
    }
}

/// One experiment or directory: its arms, its directories of repeats, or its runs by plan.
fn compare_within(
    called: &str,
    options: &Options,
) -> Result<(Comparison, Vec<Together>), CliError> {
    let directory = bundle::find(called)?;
    let taken = Taken { accept: &options.accept, factors: &options.factor };
    if !directory.join(FILE).is_file() && !directory.join("run.json").is_file() {
        let mut within = sides::holding_bundles(&directory);
        if within.len() > 1 {
            within.sort();
            let named: Vec<String> = within.iter().map(|path| path.display().to_string()).collect();
            let named: Vec<(Option<&str>, &str)> =
                named.iter().map(|path| (path.rsplit('/').next(), path.as_str())).collect();
            return compare_sides(&named, options);
        }
    }
    let together = read_side(&Reader::new(), &directory)?;
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
        compare_arms(&directory, &judged, taken)?
    };
    Ok((compared, vec![together]))
}

/// What the sides are called: as was said, else by their plans where these differ, else by where they lie, else by
/// letters.
fn names_of(named: &[(Option<&str>, &str)], plans: &[String]) -> Result<Vec<String>, CliError> {
    let distinct = |names: &[String]| {
        names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1)
    };
    let base =
        |side: &str| side.trim_end_matches('/').rsplit('/').next().unwrap_or(side).to_owned();
    let places: Vec<String> = named.iter().map(|(_, side)| base(side)).collect();
    let letters: Vec<String> = ('A'..='Z').map(String::from).take(named.len()).collect();
    if letters.len() < named.len() {
        return Err(CliError::usage("more sides than letters: compare at most 26"));
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
        false => Err(CliError::usage(format!("two sides have one name: {}", names.join(", ")))
            .hint("give each a name of its own: old=A new=B")),
    }
}

/// Two or more experiments.
fn compare_sides(
    named: &[(Option<&str>, &str)],
    options: &Options,
) -> Result<(Comparison, Vec<Together>), CliError> {
    let reader = Reader::new();
    let mut all: Vec<Together> = Vec::new();
    for (_, name) in named {
        let side = read_side(&reader, &bundle::find(name)?)?;
        let searched = |run: &Loaded| {
            run.bundle.run.experiment.as_ref().is_some_and(|e| e.kind == ExperimentKind::Tune)
        };
        if side.runs.len() > 1 && side.runs.iter().any(searched) {
            let says = format!("the runs of {name} are steps of a search, each with another load");
            return Err(CliError::usage(says).hint("compare runs of one plan that are alike"));
        }
        all.push(side);
    }
    let plans: Vec<String> = all.iter().map(|side| side.runs[0].bundle.run.name.clone()).collect();
    let names = names_of(named, &plans)?;
    let sides: Vec<Side<'_>> =
        all.iter().zip(names).map(|(side, name)| Side { name, runs: side.judged() }).collect();
    let mut compared = compare_for(&sides, &options.accept, &options.factor);
    for (side, (_, given)) in compared.names.iter().zip(named) {
        if side != given {
            compared.remarks.push(format!("{side} is {given}."));
        }
    }
    Ok((compared, all))
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
