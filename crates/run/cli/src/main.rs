//! Plimsoll measures how much load a storage system sustains, judges whether that is enough for the
//! application, and audits whether the figure can be believed.
//!
//! The directory `commands` contains one file for each command. [`exit`] defines the exit codes.
//! Measurement and judgement are in other crates.
//!
//! # Where to change what
//!
//! - a command or flag: `Options` in the command's file in `commands`, the command's line in
//!   `arguments.rs`, tests in `tests/COMMAND.rs`. A command file parses, calls and prints in at
//!   most 120 lines (`tests/house/architecture.rs`)
//! - plan changes on the command line: `commands/plan_changes.rs`; a run without a plan:
//!   `commands/run/line.rs`; execution by a fleet: `commands/load_hosts.rs`
//! - error display: `failure.rs`, wrong command lines `arguments.rs`; progress: `progress.rs`;
//!   `--metrics`: `metrics.rs`; signals: `interrupt.rs`; system calls that do not return: `watchdog.rs`
//! - bundle locations: `catalogue.rs`; removal: `removal.rs`; team catalogue: `team.rs`; fleet
//!   comparison: `commands/compare_fleets.rs`; completions: `commands/completions/candidates.rs`
//! - crate graph: `tests/house/architecture.rs` (`PLIMSOLL_BLESS=1` redraws it); module cycles:
//!   `tests/house/circles.rs`; attacks on the judgement: `tests/adversary`

mod address;
mod arguments;
mod catalogue;
mod commands;
mod common;
mod error;
mod failure;
mod interrupt;
mod keys;
mod metrics;
mod notes;
mod progress;
mod removal;
mod sharing;
mod team;
mod watchdog;

use std::process::ExitCode;

use clap::CommandFactory;
use plimsoll_engine::defect;
use plimsoll_runner::{ceilings, custody, data_slot, exit, experiment, model_run, places, session};

use crate::arguments::Arguments;
use crate::error::CliError;
use crate::exit::Exit;

fn main() -> ExitCode {
    commands::completions::answer(Arguments::command);
    defect::record_panics();
    interrupt::ignore_file_limit();
    let arguments = match arguments::parse() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::refused(&error),
    };
    let common = arguments.common.clone();
    let carry_out = || defect::catch_panic(|| arguments::carry_out(arguments));
    let mut exit =
        match watchdog::run_command(&common, carry_out).unwrap_or_else(|error| Ok(Err(error))) {
            Ok(Ok(exit)) => exit,
            Ok(Err(error)) => {
                failure::report(&error, &common);
                error.kind
            }
            // The message of the panic is already on stderr.
            Err(_) => Exit::Defect,
        };
    if let Some(says) = notes::unwritten() {
        failure::report(&CliError::environment(says), &common);
        exit = exit.worse(Exit::Environment);
    }
    // A defect in any thread counts.
    if let Some(says) = defect::first_panic() {
        let error = CliError::new(Exit::Defect, says);
        failure::report(&error.hint("this is a defect in Plimsoll: please report it"), &common);
        exit = Exit::Defect;
    }
    notes::flush();
    ExitCode::from(exit.code())
}
