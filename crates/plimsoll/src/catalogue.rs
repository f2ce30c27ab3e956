//! The catalogue of this user: where its runs lie, and how one is found by what people call it.

use std::path::{Path, PathBuf};

use plimsoll_catalogue::{Catalogue, CatalogueError, Found, Roots, import, labels_path};
use plimsoll_evidence::elsewhere;

use crate::custody::Reader;
use crate::error::CliError;
use crate::places::Places;

/// Where a user's bundles, ledger and index lie.
pub fn roots(places: &Places) -> Roots {
    // The first are this machine's own; where they do not fit, bundles go to the next two.
    let mut directories = vec![
        places.runs.clone(),
        places.state.join("runs"),
        places.cache.join("runs"),
        places.imported(),
    ];
    directories.extend(elsewhere::noted(&places.noted()));
    Roots { directories, ledger: places.ledger(), index: places.cache.join("catalogue.sqlite3") }
}

/// Opens the catalogue, up to date.
///
/// # Errors
/// A broken ledger.
pub fn open(places: &Places) -> Result<Catalogue, CliError> {
    Catalogue::open(&roots(places)).map_err(told)
}

/// The directory of what is called so: `last`, a number, a name or the beginning of one, a plan's latest run.
///
/// # Errors
/// Nothing is called so, several are, or its bundle was removed.
pub fn find(places: &Places, called: &str) -> Result<PathBuf, CliError> {
    match open(places)?.find(called).map_err(told)? {
        Found::At(directory) => Ok(directory),
        Found::Removed(entry) => {
            let says = format!("the bundle of {} is not there any more", entry.run_id);
            Err(CliError::usage(says).hint("`plimsoll runs` lists what there is"))
        }
        Found::Nothing => Err(CliError::usage(format!("there is no bundle {called}")).hint(
            "name a bundle's directory, or a run as `plimsoll runs` lists them: its number, its \
             name or the beginning of it, or `last`",
        )),
    }
}

/// Unpacks what another machine exported, beside this machine's own runs: no ledger here holds it.
///
/// # Errors
/// No archive, or one that holds no evidence: nothing is taken over then.
pub fn take(places: &Places, archive: &Path) -> Result<PathBuf, CliError> {
    let directory = import(archive, &places.imported()).map_err(told)?;
    // What can't be read as evidence is not kept.
    if let Err(error) = Reader::new().load_all(&directory) {
        std::fs::remove_dir_all(&directory).ok();
        std::fs::remove_file(labels_path(&directory)).ok();
        return Err(error.hint("it was not taken over"));
    }
    Ok(directory)
}

/// An error of the catalogue, with its exit code.
pub fn told(error: CatalogueError) -> CliError {
    match error {
        CatalogueError::Evidence(error) => error.into(),
        CatalogueError::Name(says) => CliError::usage(says),
        error @ CatalogueError::Archive { .. } => CliError::usage(error.to_string())
            .hint("an archive is what `plimsoll runs export` writes"),
        error => CliError::environment(error.to_string()),
    }
}
