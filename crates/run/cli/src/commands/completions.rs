//! `plimsoll completions SHELL`: prints shell completions for options, runs, models and
//! experiments.

mod candidates;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::error::CliError;
use crate::exit::Exit;

/// Environment variable with which the shell's script requests candidates.
const VARIABLE: &str = "PLIMSOLL_COMPLETE";

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plimsoll completions bash > /etc/bash_completion.d/plimsoll\n\nThe \
        script runs plimsoll to get its candidates: runs, models, experiments and the options of \
        the installed version."
)]
pub struct Options {
    /// The shell.
    shell: Shell,
    /// Hides the global option `--json`, because a shell script has no JSON form.
    #[arg(long, hide = true)]
    json: bool,
}

/// Prints the script for a shell.
///
/// # Errors
/// The shell is unknown.
pub fn carry_out(options: &Options) -> Result<Exit, CliError> {
    let name = options.shell.to_string();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&name) else {
        return Err(CliError::usage(format!("there are no completions for {name}")));
    };
    let mut text = Vec::new();
    shell.write_registration(VARIABLE, "plimsoll", "plimsoll", "plimsoll", &mut text).map_err(
        |error| CliError::new(Exit::Defect, format!("cannot print the completions: {error}")),
    )?;
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}

/// Prints completion candidates and exits if the shell requested them; otherwise does nothing.
pub fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(move || candidates::with(command()))
        .var(VARIABLE)
        .bin("plimsoll")
        .completer("plimsoll")
        .complete();
}
