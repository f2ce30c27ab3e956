//! Hash of a password for a token file.

use plimsoll_serve::hash_password;

use crate::commands::bundle;
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the hash of a password from standard input.
///
/// # Errors
/// No password, or a short one.
pub fn print_hash() -> Result<Exit, CliError> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| CliError::environment(format!("cannot read a password: {error}")))?;
    let hash = hash_password(line.trim_end_matches(['\r', '\n']));
    let hash = hash.map_err(|error| CliError::usage(error.to_string()))?;
    bundle::print(&format!("{hash}\n"))?;
    Ok(Exit::Ok)
}
