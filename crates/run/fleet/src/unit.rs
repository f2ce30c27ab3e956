//! The systemd unit of an agent.

use std::path::{Path, PathBuf};

use plimsoll_runner::error::RunnerError;

/// Unit file from `contrib`, with example paths.
const UNIT: &str = include_str!("../../../../contrib/fleet/plimsoll-agent.service");

/// Returns a systemd unit that runs this program with a host's file. The unit allows the program to
/// write to the directories that plans may use.
///
/// # Errors
/// The file does not exist.
pub fn of_file(file: &Path, directories: &[PathBuf]) -> Result<String, RunnerError> {
    let missing = |path: &Path, error: std::io::Error| {
        RunnerError::environment(format!("cannot find {}: {error}", path.display()))
    };
    let file = file.canonicalize().map_err(|error| missing(file, error))?;
    let program = std::env::current_exe().map_err(|error| missing(Path::new("plimsoll"), error))?;
    let quoted = |prefix: &str, path: &Path| format!("\"{prefix}{}\"", path.display());
    let directories: Vec<String> = directories.iter().map(|path| quoted("-", path)).collect();
    Ok(UNIT
        .replace("/usr/local/bin/plimsoll", &quoted("", &program))
        .replace("/etc/plimsoll/agent.toml", &quoted("", &file))
        .replace(&quoted("-", Path::new("/srv/test")), &directories.join(" ")))
}
