//! Writes the files of a fleet's set-up. Files are replaced atomically, and secret files are
//! readable only by this user.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use plimsoll_runner::error::RunnerError;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    move |error| RunnerError::environment(format!("cannot write {}: {error}", path.display()))
}

/// Creates a directory and its parents, with access only for this user.
pub(crate) fn make_directory(path: &Path) -> Result<(), RunnerError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// Writes a new file. Fails if the file exists.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), RunnerError> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed(path))
}

/// Replaces a file atomically, readable by this user only.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), RunnerError> {
    let half = path.with_extension("half");
    let written = || {
        // A killed process may have left this file. It can be overwritten, because the caller has
        // locked the fleet.
        let mut file = fs::OpenOptions::new();
        let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&half, path)?;
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    written().map_err(failed(path))
}
