//! The team's catalogue, where one is asked for (`--catalogue`, `PLIMSOLL_CATALOGUE`).

use std::sync::OnceLock;

use plimsoll_catalogue::TeamClient;

use crate::common::Common;
use crate::error::CliError;
use crate::places::Places;

/// What names it where the option does not: no other user of this host sees it there.
pub const VARIABLE: &str = "PLIMSOLL_CATALOGUE";

/// Asked for once, for all of this process.
static ASKED: OnceLock<TeamClient> = OnceLock::new();

/// Takes what the command line or the environment asks for.
///
/// # Errors
/// An address that is none.
pub fn ask(common: &Common) -> Result<(), CliError> {
    let named = common.catalogue.clone().or_else(|| std::env::var(VARIABLE).ok());
    let Some(named) = named.filter(|named| !named.is_empty()) else { return Ok(()) };
    let address = named.parse().map_err(|says| {
        CliError::usage(format!("--catalogue: {says}"))
            .hint("postgres://user@host/database; the password is taken from PGPASSWORD")
    })?;
    let places = Places::from_environment()?;
    // It is asked once.
    let _ = ASKED.set(TeamClient::new(address, &places.state, &places.cache));
    Ok(())
}

/// The team's catalogue, if one is asked for.
pub fn asked() -> Option<&'static TeamClient> {
    ASKED.get()
}
