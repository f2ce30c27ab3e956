//! Completion candidates for arguments, selected by the argument's name.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use plimsoll_catalogue::Filter;
use plimsoll_runner::places::Places;

use crate::catalogue;

/// Adds candidates to the arguments of a command.
pub fn with(command: Command) -> Command {
    let is_experiment = command.get_name() == "experiment";
    let command = command.mut_args(known);
    command.mut_subcommands(move |sub| {
        with(if is_experiment { sub.mut_args(experiment_argument) } else { sub })
    })
}

fn known(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "model" => arg.add(ArgValueCompleter::new(or_a_path(models))),
        "plan" => arg.add(ArgValueCompleter::new(or_a_path(plans))),
        "bundle" | "run" | "runs" | "sides" => arg.add(ArgValueCompleter::new(or_a_path(runs))),
        _ => arg,
    }
}

/// Candidates for the positional argument of `experiment show` and `experiment run`.
fn experiment_argument(arg: Arg) -> Arg {
    if arg.is_positional() { arg.add(ArgValueCompleter::new(or_a_path(experiments))) } else { arg }
}

type Names = fn() -> Vec<(String, String)>;

/// Completes names that start with the typed text, and paths.
fn or_a_path(names: Names) -> impl ValueCompleter {
    move |typed: &OsStr| {
        let begun = typed.to_string_lossy();
        let mut candidates: Vec<CompletionCandidate> = names()
            .into_iter()
            .filter(|(name, _)| name.starts_with(begun.as_ref()))
            .map(|(name, help)| {
                CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into()))
            })
            .collect();
        candidates.extend(PathCompleter::any().complete(typed));
        candidates
    }
}

fn models() -> Vec<(String, String)> {
    plimsoll_model::spec::shipped()
        .iter()
        .map(|model| (model.name.to_owned(), String::new()))
        .collect()
}

fn experiments() -> Vec<(String, String)> {
    plimsoll_experiments::files::shipped().map(|files| (files.name, String::new())).collect()
}

/// Built-in plans, each with its purpose.
fn plans() -> Vec<(String, String)> {
    let of = |plan: &plimsoll_plan::GalleryPlan| {
        let names: Vec<&str> = plan.aliases().chain([plan.name]).collect();
        let purpose = plan.says("For whom");
        names.into_iter().map(move |name| (name.to_owned(), purpose.clone()))
    };
    plimsoll_plan::gallery().iter().flat_map(of).collect()
}

/// Maximum number of runs that are listed, latest first.
const RUNS: u32 = 100;

/// Returns the runs that have bundles, with plan and verdict, latest first. The list is empty if
/// the catalogue cannot be read.
fn runs() -> Vec<(String, String)> {
    let Ok(places) = Places::from_environment() else { return Vec::new() };
    let Ok(catalogue) = catalogue::open(&places) else { return Vec::new() };
    let filter = Filter { limit: Some(RUNS), with_bundle: true, ..Filter::default() };
    let mut runs: Vec<_> = catalogue
        .runs(&filter)
        .unwrap_or_default()
        .into_iter()
        .map(|run| {
            let verdict = run.verdict.unwrap_or_else(|| "no verdict".to_owned());
            (run.run_id, format!("{}: {verdict}", run.name))
        })
        .collect();
    runs.push(("last".to_owned(), "the latest".to_owned()));
    runs.reverse();
    runs
}
