//! `plimsoll man`: man pages for packagers, one for the program and one per command.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::error::CliError;
use crate::exit::Exit;

/// Options of `man`.
#[derive(Debug, Args)]
pub struct Options {
    /// Write all pages to this directory; without it, print the page of the program.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Prints the page of the program, or writes all pages.
///
/// # Errors
/// The directory cannot be written, or a page cannot be rendered.
pub fn carry_out(options: &Options, command: Command) -> Result<Exit, CliError> {
    if let Some(to) = &options.to {
        clap_mangen::generate_to(command, to)
            .map_err(|error| CliError::environment(format!("{}: {error}", to.display())))?;
        return Ok(Exit::Ok);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).map_err(|error| {
        CliError::new(Exit::Defect, format!("cannot create the man page: {error}"))
    })?;
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}
