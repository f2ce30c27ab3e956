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
mod places;
mod progress;
mod published;
mod removal;
mod run_id;
mod session;
mod until_steady;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = std::panic::catch_unwind(|| commands::dispatch(arguments));
    let exit = match result {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            eprintln!("{error}");
            error.kind
        }
        // The panic's own message is on stderr already.
        Err(_) => {
            eprintln!("error: this is a defect in Plimsoll; please report the message above");
            Exit::Defect
        }
    };
    ExitCode::from(exit.code())
}
