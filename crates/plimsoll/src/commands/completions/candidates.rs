//! What an argument can be, by what it is called.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use plimsoll_runner::places::Places;

/// The command with candidates for the arguments that name something of Plimsoll's own.
pub fn with(command: Command) -> Command {
    let is_experiment = command.get_name() == "experiment";
    let command = command.mut_args(known);
    command.mut_subcommands(move |sub| with(if is_experiment { sub.mut_args(named) } else { sub }))
}

fn known(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "model" => arg.add(ArgValueCompleter::new(or_a_path(models))),
        "bundle" | "run" | "runs" | "sides" => arg.add(ArgValueCompleter::new(or_a_path(runs))),
        _ => arg,
    }
}

/// The positional argument of `experiment show` and `run`.
fn named(arg: Arg) -> Arg {
    if arg.is_positional() { arg.add(ArgValueCompleter::new(or_a_path(experiments))) } else { arg }
}

type Names = fn() -> Vec<(String, String)>;

/// Names that begin as typed, and paths, as each of these arguments may be one.
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

/// Runs and experiments that lie in the catalogue, the latest first; none where it cannot be read.
fn runs() -> Vec<(String, String)> {
    let Ok(places) = Places::from_environment() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(&places.runs) else { return Vec::new() };
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .map(|name| (name, String::new()))
        .collect();
    names.sort_by(|a, b| b.cmp(a));
    names
}
