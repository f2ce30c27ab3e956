//! This user's catalogue of runs, and the search for a run by number, name or prefix.

use std::path::{Path, PathBuf};

use plimsoll_catalogue::{
    Catalogue, CatalogueError, Entry, Lookup, Roots, SyncReport, import, labels_path,
};
use plimsoll_evidence::external_directories;

use crate::custody::Reader;
use crate::error::CliError;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Returns the directories of a user's bundles, ledger and index.
pub fn roots(places: &Places) -> Roots {
    // The main directories come first, then other directories that contain bundles.
    let mut directories = vec![
        places.runs.clone(),
        places.state.join("runs"),
        places.cache.join("runs"),
        places.imported(),
    ];
    directories.extend(external_directories::list(&places.bundle_directory_list()));
    Roots {
        directories,
        ledger: places.ledger(),
        index: places.cache.join("catalogue.sqlite3"),
        is_shared: team::client().is_some(),
    }
}

/// Opens the catalogue and updates its index.
///
/// # Errors
/// The ledger is damaged.
pub fn open(places: &Places) -> Result<Catalogue, CliError> {
    Catalogue::open(&roots(places)).map_err(catalogue_error)
}

/// Opens the catalogue, including the runs of other users from the team's catalogue.
///
/// # Errors
/// The ledger is damaged. If the team's catalogue cannot be reached, this only causes a warning.
pub fn open_with_others(places: &Places) -> Result<Catalogue, CliError> {
    let mut own = open(places)?;
    if let Some(shared) = team::client() {
        match shared.sync(&mut own, &|_| false) {
            Ok(sharing) => warn_unreadable(&sharing),
            // If the team's catalogue cannot be used, this host's runs are still listed, and the
            // other users' runs are listed in their last known state.
            Err(error @ CatalogueError::Team { .. }) => notes::tell(&format!(
                "warning: runs of other users may be missing or outdated: {error}"
            )),
            Err(error) => return Err(catalogue_error(error)),
        }
    }
    Ok(own)
}

/// Warns about unreadable runs in the team's catalogue.
pub fn warn_unreadable(sharing: &SyncReport) {
    if sharing.unreadable > 0 {
        notes::tell(&format!(
            "warning: {} runs of the team's catalogue are not listed, because another version of \
             Plimsoll created them",
            sharing.unreadable
        ));
    }
}

/// Returns the directory of a run. `name` is `last`, the run's number, its name or a prefix of its
/// name, or the name of a plan (for the plan's latest run).
///
/// # Errors
/// There is no run of this name, the name is ambiguous, or the bundle was removed.
pub fn find(places: &Places, name: &str) -> Result<PathBuf, CliError> {
    let found = open(places)?.find(name).map_err(catalogue_error)?;
    let found = match found {
        // Another user may have added the run a moment ago.
        Lookup::Missing if team::client().is_some() => {
            open_with_others(places)?.find(name).map_err(catalogue_error)?
        }
        found => found,
    };
    match found {
        Lookup::Local(directory) => Ok(directory),
        Lookup::Remote(entry) => fetch_bundles(&[*entry], name),
        Lookup::RemoteExperiment(runs) => {
            let one = fetch_bundles(&runs, name)?;
            Ok(one.parent().map_or(one.clone(), Path::to_path_buf))
        }
        // The team's catalogue may still have the bundle.
        Lookup::Removed(entry) if team::client().is_some() => fetch_bundles(&[*entry], name),
        Lookup::Removed(entry) => {
            Err(CliError::usage(entry.missing_bundle()).hint("`plimsoll runs` lists the runs"))
        }
        Lookup::Missing => Err(CliError::usage(format!("no bundle {name}")).hint(
            "use the directory of a bundle, or a run from `plimsoll runs`: its number, its name, \
             a prefix of its name, or `last`",
        )),
    }
}

/// Fetches the bundles of other users' runs. Returns the directory of the last fetched bundle.
fn fetch_bundles(runs: &[Entry], name: &str) -> Result<PathBuf, CliError> {
    let Some(shared) = team::client() else {
        return Err(CliError::usage(format!("no bundle {name}")));
    };
    let mut fetched = None;
    for run in runs {
        fetched = Some(shared.fetch(run).map_err(catalogue_error)?);
    }
    fetched.ok_or_else(|| CliError::usage(format!("no bundle {name}")))
}

/// Imports an archive from another machine. This host's ledgers do not contain its runs.
///
/// # Errors
/// The file is not an archive, or contains no evidence. Nothing is imported then.
pub fn import_archive(places: &Places, archive: &Path) -> Result<PathBuf, CliError> {
    let directory = import(archive, &places.imported()).map_err(catalogue_error)?;
    // If the evidence cannot be read, remove the imported files.
    if let Err(error) = Reader::new().load_all(&directory) {
        std::fs::remove_dir_all(&directory).ok();
        std::fs::remove_file(labels_path(&directory)).ok();
        return Err(error.hint("the archive was not imported"));
    }
    Ok(directory)
}

/// Converts an error of the catalogue.
pub fn catalogue_error(error: CatalogueError) -> CliError {
    match error {
        CatalogueError::Evidence(error) => error.into(),
        CatalogueError::Name(says) => CliError::usage(says),
        error @ CatalogueError::Archive { .. } => CliError::usage(error.to_string())
            .hint("use an archive that was created with `plimsoll runs export`"),
        error @ CatalogueError::Team { .. } => CliError::environment(error.to_string()).hint(
            "check that PostgreSQL is running at this address, that this user may use the \
             database, and that PGPASSWORD contains the password",
        ),
        CatalogueError::Io { action, path, error } => CliError::named_path(action, &path, &error),
        error => CliError::environment(error.to_string()),
    }
}
