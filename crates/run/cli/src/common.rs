//! Options that every command has.

use std::path::Path;

use clap::{Args, ColorChoice};

use crate::error::CliError;

/// Options of all commands.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// Print the result as JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The team's catalogue, postgres://user@host/database: finished runs are copied to it, and
    /// other users' runs in it are listed. It can also be set in PLIMSOLL_CATALOGUE. The password
    /// is read from PGPASSWORD.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub catalogue: Option<String>,
    /// When to use colour. NO_COLOR is respected.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    pub color: clap::ColorChoice,
}

/// Returns true if output to a stream is coloured. `terminal` states whether the stream is a
/// terminal.
pub fn colour(common: &Globals, terminal: bool) -> bool {
    match common.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // According to no-color.org, any non-empty value disables colour.
        ColorChoice::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Rejects an output file that cannot be written, before the run that it will show. Creates nothing.
///
/// # Errors
/// The file cannot be written.
pub fn check_output(option: &str, path: &Path) -> Result<(), CliError> {
    let found = std::fs::metadata(path);
    let says = match &found {
        Ok(found) if found.is_dir() => "it is a directory".to_owned(),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => error.to_string(),
        _ => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let checked = if found.is_ok() { path } else { parent.unwrap_or(Path::new(".")) };
            match rustix::fs::access(checked, rustix::fs::Access::WRITE_OK) {
                Ok(()) => return Ok(()),
                Err(error) => std::io::Error::from(error).to_string(),
            }
        }
    };
    Err(CliError::usage(format!("{option} {}: {says}", path.display()))
        .hint("specify a file in an existing directory in which you may write"))
}
