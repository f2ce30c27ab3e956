//! `plimsoll man`: the man page, for packagers.

use clap::Command;

use crate::error::CliError;
use crate::exit::Exit;

/// Prints the page.
///
/// # Errors
/// A page that cannot be rendered.
pub fn carry_out(command: Command) -> Result<Exit, CliError> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|error| CliError::new(Exit::Defect, format!("the man page: {error}")))?;
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}
