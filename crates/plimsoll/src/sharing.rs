//! Runs of this user that are put into the team's catalogue: those that one names, and each when it ends.

use plimsoll_catalogue::{Entry, SyncReport};

use crate::catalogue;
use crate::error::CliError;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Puts those of this user's runs that are wanted and not there as they are here.
///
/// # Errors
/// No team's catalogue is asked for, it can't be written, a broken ledger.
pub fn put(places: &Places, wanted: &dyn Fn(&Entry) -> bool) -> Result<SyncReport, CliError> {
    let Some(shared) = team::asked() else {
        return Err(CliError::usage("no team's catalogue is named")
            .hint(format!("--catalogue postgres://user@host/database, or {}", team::VARIABLE)));
    };
    let sharing = shared.sync(&mut catalogue::open(places)?, wanted).map_err(catalogue::told)?;
    catalogue::tell_unreadable(&sharing);
    Ok(sharing)
}

/// Puts the runs that began at a time or later there, if a team's catalogue is asked for. What goes wrong is told: the
/// evidence is on this host, and the command ends as the run did.
pub fn put_since(unix_ns: u64) {
    let Some(shared) = team::asked() else { return };
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
            "warning: {}; the evidence is on this host, and `plimsoll runs push` puts it there later",
            error.message
        )),
    }
}
