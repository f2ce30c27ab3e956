//! Removes bundles and experiments. Only files that Plimsoll writes are removed, and directories
//! that become empty. Other files are reported.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_catalogue::labels_path;
use plimsoll_evidence::{Bundle, bundle, reserve, seal};
use plimsoll_experiments::directory::FILES as PUBLISHED_FILES;
use plimsoll_runner::fleet;

use crate::error::CliError;
use crate::experiment as record;

/// Files of an experiment, except its record (experiment.json), which is removed last.
const OTHER_FILES: [&str; 6] = [
    "report.html",
    ".report.html.new",
    ".experiment.json.new",
    ".SHA256SUMS.new",
    seal::FILE,
    seal::SIGNATURE,
];

/// Maximum depth of nested experiments: a published experiment, its load searches, and the runs of
/// the experiment and of the searches.
const DEPTH_MAX: u32 = 4;

/// Removes a bundle, or an experiment and its bundles. Other files are reported, but not removed.
///
/// # Errors
/// A file cannot be removed, or files of other programs remain.
pub fn whole(directory: &Path) -> Result<(), CliError> {
    let left = if directory.join(record::FILE).is_file() {
        experiment(directory)?
    } else if fleet::is_fleet(directory) {
        let left = remove_fleet(directory)?;
        remove_file(&labels_path(directory))?;
        left
    } else {
        bundle(directory)?
    };
    let Some((first, more)) = left.split_first() else { return Ok(()) };
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let says = format!("{}{more}: not created by Plimsoll, therefore not removed", first.display());
    Err(CliError::environment(says).hint("all other files were removed"))
}

/// Removes a bundle. Returns the remaining files.
///
/// # Errors
/// The directory is not a bundle, or a file cannot be removed.
pub fn bundle(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    Bundle::read(directory)?;
    let left = remove_bundle(directory)?;
    remove_file(&labels_path(directory))?;
    Ok(left)
}

/// Removes the bundle of a fleet run and the bundles of its hosts. Returns the remaining files.
fn remove_fleet(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    fleet::read(directory)?;
    let mut left = Vec::new();
    let hosts = directory.join(fleet::HOSTS);
    for host in entries(&hosts)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&host)?.into_iter().filter(|path| path.is_dir()) {
            if Bundle::read(&path).is_ok() {
                remove_bundle(&path)?;
            }
        }
    }
    let all = directory.join(fleet::ALL);
    let files = fleet::FILES.iter().map(|name| all.join(name));
    let derived = ["verdict.json", "report.html"].iter().map(|name| directory.join(name));
    for path in files.chain(derived) {
        remove_file(&path)?;
    }
    remove_if_empty(directory, &mut left)?;
    Ok(left)
}

/// Removes the directory and its subdirectories if they contain no files. Adds remaining files to
/// `left`.
fn remove_if_empty(directory: &Path, left: &mut Vec<PathBuf>) -> Result<(), CliError> {
    for path in entries(directory)? {
        match path.is_dir() && !path.is_symlink() {
            true => remove_if_empty(&path, left)?,
            false => left.push(path),
        }
    }
    match entries(directory)?.is_empty() {
        true => remove_empty(directory, &[]),
        false => Ok(()),
    }
}

/// Returns the entries of a directory; empty if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let found = fs::read_dir(directory).map_err(|error| read_error(directory, &error))?;
    Ok(found.flatten().map(|entry| entry.path()).collect())
}

fn remove_bundle(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let left = bundle::remove(directory)?;
    Ok(left.into_iter().map(|name| directory.join(name)).collect())
}

/// Removes an experiment and its bundles, including the bundles of killed runs and nested
/// experiments. Returns the remaining files.
///
/// # Errors
/// The record belongs to another program, or a file cannot be removed.
pub fn experiment(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let left = within(directory, DEPTH_MAX)?;
    remove_file(&labels_path(directory))?;
    Ok(left)
}

fn within(directory: &Path, depth: u32) -> Result<Vec<PathBuf>, CliError> {
    record::check_record(directory)?;
    let mut left = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| read_error(directory, &error))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // A symbolic link is not treated as a directory.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory {
            continue;
        }
        if depth > 0 && path.join(record::FILE).is_file() {
            match within(&path, depth - 1) {
                Ok(more) => {
                    left.extend(more);
                    remove_file(&labels_path(&path))?;
                }
                Err(_) => left.push(path),
            }
        } else if name == PUBLISHED_FILES {
            left.extend(remove_published(&path)?);
        } else if fleet::is_fleet(&path) {
            left.extend(remove_fleet(&path)?);
            remove_file(&labels_path(&path))?;
        } else if Bundle::read(&path).is_ok() || is_interrupted(&path) {
            left.extend(remove_bundle(&path)?);
            remove_file(&labels_path(&path))?;
        } else {
            left.push(path);
        }
    }
    for path in OTHER_FILES.iter().map(|name| directory.join(name)) {
        remove_file(&path)?;
    }
    remove_file(&directory.join(record::FILE))?;
    for entry in fs::read_dir(directory).map_err(|error| read_error(directory, &error))?.flatten() {
        let path = entry.path();
        if !left.iter().any(|known| known.starts_with(&path)) {
            left.push(path);
        }
    }
    remove_empty(directory, &left)?;
    Ok(left)
}

/// Returns true if the directory only contains files of the bundle of an interrupted run.
fn is_interrupted(directory: &Path) -> bool {
    let names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let ours = |name: &String| {
        let whole = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".new"));
        bundle::FILES.contains(&whole.unwrap_or(name)) || name == reserve::FILE
    };
    names.iter().all(ours)
}

/// Removes the plans and tables that a published experiment wrote next to its bundles.
fn remove_published(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut left = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| read_error(directory, &error))?.flatten() {
        let path = entry.path();
        let kind = path.extension().and_then(|extension| extension.to_str());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && matches!(kind, Some("toml" | "csv")) {
            remove_file(&path)?;
        } else {
            left.push(path);
        }
    }
    remove_empty(directory, &left)?;
    Ok(left)
}

fn remove_empty(directory: &Path, left: &[PathBuf]) -> Result<(), CliError> {
    if left.is_empty() {
        fs::remove_dir(directory).map_err(|error| remove_error(directory, &error))?;
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<(), CliError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(remove_error(path, &error))
        }
        _ => Ok(()),
    }
}

fn read_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::environment(format!("cannot read {}: {error}", path.display()))
}

fn remove_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::environment(format!("cannot remove {}: {error}", path.display()))
}
