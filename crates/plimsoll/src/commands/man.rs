//! `plimsoll man`: the man page, for packagers.

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the page.
///
/// # Errors
/// A page that cannot be rendered.
pub fn carry_out() -> Result<Exit, CliError> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command())
        .render(&mut text)
        .map_err(|error| CliError::new(Exit::Defect, format!("the man page: {error}")))?;
    super::bundle::print_bytes(&text)?;
    Ok(Exit::Ok)
}
