//! `plimsoll completions SHELL`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::CliError;
use crate::exit::Exit;

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plimsoll completions bash > /etc/bash_completion.d/plimsoll")]
pub struct Options {
    /// For which shell.
    shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// None.
pub fn carry_out(options: &Options, mut command: Command) -> Result<Exit, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut command, "plimsoll", &mut text);
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}
