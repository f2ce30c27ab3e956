//! `plimsoll compare A B…`: experiments side by side; `plimsoll compare PLAN`: the targets of a plan,
//! run in turns.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::Verdict;
use plimsoll_judge::compare::{Comparison, Side, compare};
use plimsoll_plan::Plan;
use plimsoll_report::comparison_document;

use super::after::After;
use super::sides::{exit_of, read_side, show, tell_custody};
use super::{bundle, compare_sweeps};
use crate::common::Common;
use crate::custody::{Loaded, Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll compare EXPERIMENT-A EXPERIMENT-B\n  plimsoll compare \
    before/ after/ --accept kernel\n  plimsoll compare ext4-against-btrfs.toml\n  plimsoll compare \
    SWEEP-A SWEEP-B --html cells.html\n\nA side is an experiment or run as `plimsoll runs` lists it, \
    or a directory that holds bundles. A plan\nthat names several targets is run: each target in \
    turn, in random order. Two sweeps are compared cell by\ncell; a directory with several sweeps of \
    one plan is one side.\nExit code 3: conditions differ that were not accepted, so no winner is \
    called."
)]
pub struct Options {
    /// Experiments, runs or directories of bundles; or one plan with several targets.
    #[arg(required = true, value_name = "SIDE")]
    sides: Vec<String>,
    /// Accept that this condition differs, as the comparison names it: `kernel`, or `plan` for all
    /// differences of the plans. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    accept: Vec<String>,
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
        [experiment] => {
            let directory = bundle::find(experiment)?;
            let together = read_side(&Reader::new(), &directory)?;
            let compared = compare_arms(&directory, &together.judged(), &options.accept)?;
            (compared, vec![together])
        }
        several => {
            if let Some(compared) = compare_sweeps::compare_named(several, &options.accept)? {
                return compare_sweeps::told(&compared, options.html.as_deref(), common);
            }
            compare_sides(several, &options.accept)?
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
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let (out, destroy) = (options.out.clone(), options.destroy.clone());
    let sign = options.sign.clone();
    let after = After { out, destroy, sign, ..After::default() };
    super::arms::run_arms(&plan, &after, &options.accept, common, &mut progress, &interrupt)
}

/// The arms of an experiment that ran several targets in turns.
///
/// # Errors
/// A directory whose runs have no arms.
pub fn compare_arms(
    directory: &Path,
    judged: &[(&Bundle, &Verdict)],
    accept: &[String],
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
    Ok(compare(&names.into_iter().map(side).collect::<Vec<_>>(), accept))
}

/// Two or more experiments.
fn compare_sides(
    named: &[String],
    accept: &[String],
) -> Result<(Comparison, Vec<Together>), CliError> {
    let reader = Reader::new();
    let mut all: Vec<Together> = Vec::new();
    for name in named {
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
    let distinct = plans.iter().all(|plan| plans.iter().filter(|p| *p == plan).count() == 1);
    let letters = ('A'..='Z').map(String::from);
    let sides: Vec<Side<'_>> = all
        .iter()
        .zip(plans)
        .zip(letters)
        .map(|((side, plan), letter)| Side {
            name: if distinct { plan } else { letter },
            runs: side.judged(),
        })
        .collect();
    if sides.len() < named.len() {
        return Err(CliError::usage("more sides than letters: compare at most 26"));
    }
    let mut compared = compare(&sides, accept);
    for (side, name) in compared.names.iter().zip(named) {
        if side != name {
            compared.remarks.push(format!("{side} is {name}."));
        }
    }
    Ok((compared, all))
}
