//! Options that every command has.

use std::path::Path;

use clap::{Args, ColorChoice};

use crate::error::CliError;

/// Options that every command accepts.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// Print the result as JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Do not print progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Address of the team's catalogue: postgres://user@host/database. Finished runs are copied to
    /// it, and commands also find other users' runs in it. PLIMSOLL_CATALOGUE sets the same
    /// address; the password is read from PGPASSWORD.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub catalogue: Option<String>,
    /// When to use colour. With `auto`, output is coloured only on a terminal, and only if NO_COLOR
    /// is not set.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    pub color: clap::ColorChoice,
}

/// Returns true if output to a stream is coloured. `terminal` is true if the stream is a terminal.
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

/// Checks before a run that its output file can be written. Does not create the file.
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
        .hint("specify a file in an existing directory to which you may write"))
}
