//! The catalogue of this user: where its runs lie, and how one is found by what people call it.

use std::path::{Path, PathBuf};

use plimsoll_catalogue::{
    Catalogue, CatalogueError, Entry, Lookup, Roots, SyncReport, import, labels_path,
};
use plimsoll_evidence::elsewhere;

use crate::custody::Reader;
use crate::error::CliError;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Where a user's bundles, ledger and index lie.
pub fn roots(places: &Places) -> Roots {
    // The first are this machine's own; where they do not fit, bundles go to the next two.
    let mut directories = vec![
        places.runs.clone(),
        places.state.join("runs"),
        places.cache.join("runs"),
        places.imported(),
    ];
    directories.extend(elsewhere::noted(&places.bundle_directory_list()));
    Roots {
        directories,
        ledger: places.ledger(),
        index: places.cache.join("catalogue.sqlite3"),
        is_shared: team::asked().is_some(),
    }
}

/// Opens the catalogue, up to date.
///
/// # Errors
/// A broken ledger.
pub fn open(places: &Places) -> Result<Catalogue, CliError> {
    Catalogue::open(&roots(places)).map_err(told)
}

/// Opens this user's catalogue, with what the team's holds of others now.
///
/// # Errors
/// A broken ledger, a team's catalogue that can't be read.
pub fn open_with_others(places: &Places) -> Result<Catalogue, CliError> {
    let mut own = open(places)?;
    if let Some(shared) = team::asked() {
        let sharing = shared.sync(&mut own, &|_| false).map_err(told)?;
        tell_unreadable(&sharing);
    }
    Ok(own)
}

/// Says which runs of the team's are not listed.
pub fn tell_unreadable(sharing: &SyncReport) {
    if sharing.unreadable > 0 {
        notes::tell(&format!(
            "warning: {} runs of the team's catalogue are not listed: another version of Plimsoll wrote them",
            sharing.unreadable
        ));
    }
}

/// The directory of what is called so: `last`, a number, a name or the beginning of one, a plan's latest run.
///
/// # Errors
/// Nothing is called so, several are, or its bundle was removed.
pub fn find(places: &Places, called: &str) -> Result<PathBuf, CliError> {
    let found = open(places)?.find(called).map_err(told)?;
    let found = match found {
        // Others may have put it there a moment ago.
        Lookup::Missing if team::asked().is_some() => {
            open_with_others(places)?.find(called).map_err(told)?
        }
        found => found,
    };
    match found {
        Lookup::Local(directory) => Ok(directory),
        Lookup::Remote(entry) => fetched(&[*entry], called),
        Lookup::RemoteExperiment(runs) => {
            let one = fetched(&runs, called)?;
            Ok(one.parent().map_or(one.clone(), Path::to_path_buf))
        }
        // It may have been put there before it was removed here.
        Lookup::Removed(entry) if team::asked().is_some() => fetched(&[*entry], called),
        Lookup::Removed(entry) => {
            let says = format!("the bundle of {} is not there any more", entry.run_id);
            Err(CliError::usage(says).hint("`plimsoll runs` lists what there is"))
        }
        Lookup::Missing => Err(CliError::usage(format!("there is no bundle {called}")).hint(
            "name a bundle's directory, or a run as `plimsoll runs` lists them: its number, its \
             name or the beginning of it, or `last`",
        )),
    }
}

/// Fetches the bundles of runs of others; gives where the last lies.
fn fetched(runs: &[Entry], called: &str) -> Result<PathBuf, CliError> {
    let Some(shared) = team::asked() else {
        return Err(CliError::usage(format!("there is no bundle {called}")));
    };
    let mut fetched = None;
    for run in runs {
        fetched = Some(shared.fetch(run).map_err(told)?);
    }
    fetched.ok_or_else(|| CliError::usage(format!("there is no bundle {called}")))
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
        error @ CatalogueError::Team { .. } => CliError::environment(error.to_string()).hint(
            "is PostgreSQL running there, and may this user use that database? PGPASSWORD holds the password",
        ),
        error => CliError::environment(error.to_string()),
    }
}
