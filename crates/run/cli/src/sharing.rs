//! Copies runs of this user to the team's catalogue: selected runs, or each run when it ends.

use plimsoll_catalogue::{Entry, SyncReport};

use crate::catalogue;
use crate::error::CliError;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Copies the selected runs that are missing in the team's catalogue or differ from their copies
/// there.
///
/// # Errors
/// There is no team catalogue, it cannot be written, or the ledger is damaged.
pub fn put(places: &Places, required: &dyn Fn(&Entry) -> bool) -> Result<SyncReport, CliError> {
    let Some(shared) = team::client() else {
        return Err(CliError::usage("there is no team catalogue").hint(format!(
            "set --catalogue postgres://user@host/database, or {}",
            team::VARIABLE
        )));
    };
    let sharing =
        shared.sync(&mut catalogue::open(places)?, required).map_err(catalogue::catalogue_error)?;
    catalogue::warn_unreadable(&sharing);
    Ok(sharing)
}

/// If there is a team catalogue, copies the runs that started at or after `unix_ns` to it. Errors
/// are only printed as warnings, because the evidence is still on this host.
pub fn put_since(unix_ns: u64) {
    let Some(shared) = team::client() else { return };
    let put = Places::from_environment()
        .and_then(|places| put(&places, &|entry| entry.started_unix_ns >= unix_ns));
    match put {
        Ok(sharing) => {
            for run in &sharing.pushed {
                notes::tell(&format!(
                    "{run} is in the team's catalogue {}",
                    shared.display_address()
                ));
            }
        }
        Err(error) => notes::tell(&format!(
            "warning: {}; the evidence is on this host; copy it later with `plimsoll runs push`",
            error.message
        )),
    }
}
