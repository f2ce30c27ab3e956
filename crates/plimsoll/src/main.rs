//! Plimsoll: how much load a storage system really carries, whether that is enough for the
//! application that needs it, and whether the figure can be believed.
//!
//! One file per command below `commands`; exit codes in [`exit`]. This crate neither measures nor
//! judges.

mod arguments;
mod ceilings;
mod commands;
mod custody;
mod error;
mod evidence_place;
mod exit;
mod experiment;
mod interrupt;
mod kept_data;
mod keys;
mod modelled;
mod notes;
mod places;
mod progress;
mod published;
mod removal;
mod run_id;
mod session;
mod until_steady;

use std::process::ExitCode;

use clap::Parser;
use plimsoll_engine::defect;

use crate::arguments::Arguments;
use crate::error::CliError;
use crate::exit::Exit;

fn main() -> ExitCode {
    defect::watch();
    interrupt::ignore_file_limit();
    let arguments = Arguments::parse();
    let mut exit = match defect::caught(|| commands::dispatch(arguments)) {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            notes::tell(&error.to_string());
            error.kind
        }
        // The panic's own message is on stderr already.
        Err(_) => Exit::Defect,
    };
    if let Some(says) = notes::unwritten() {
        notes::tell(&CliError::environment(says).to_string());
        exit = exit.worse(Exit::Environment);
    }
    // Of any thread, whatever became of what it was doing.
    if let Some(says) = defect::first() {
        notes::tell(&format!(
            "error: {says}\n  hint: this is a defect in Plimsoll: please report it"
        ));
        exit = Exit::Defect;
    }
    notes::flush();
    ExitCode::from(exit.code())
}
