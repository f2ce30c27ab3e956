//! `plimsoll completions SHELL`: what a shell asks the program for when a tab is pressed, so that runs, models and
//! experiments are completed as well as options.

mod candidates;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::error::CliError;
use crate::exit::Exit;

/// The variable by which a shell's script asks for candidates.
const VARIABLE: &str = "PLIMSOLL_COMPLETE";

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plimsoll completions bash > /etc/bash_completion.d/plimsoll\n\nThe script calls \
    plimsoll for its candidates: runs, models, experiments and options of the version that is installed."
)]
pub struct Options {
    /// For which shell.
    shell: Shell,
}

/// Prints the script that a shell has to read.
///
/// # Errors
/// A shell that is not known.
pub fn carry_out(options: &Options) -> Result<Exit, CliError> {
    let name = options.shell.to_string();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&name) else {
        return Err(CliError::usage(format!("there are no completions for {name}")));
    };
    let mut text = Vec::new();
    shell
        .write_registration(VARIABLE, "plimsoll", "plimsoll", "plimsoll", &mut text)
        .map_err(|error| CliError::new(Exit::Defect, format!("the completions: {error}")))?;
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}

/// Answers the shell and ends the program where a shell asks; does nothing otherwise.
pub fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(move || candidates::with(command()))
        .var(VARIABLE)
        .bin("plimsoll")
        .completer("plimsoll")
        .complete();
}
