//! The team's catalogue (`--catalogue`, `PLIMSOLL_CATALOGUE`).

use std::sync::OnceLock;

use plimsoll_catalogue::{Address, TeamClient};

use crate::common::Globals;
use crate::error::CliError;
use crate::places::Places;

/// Environment variable that contains the catalogue's URL. Unlike the command line, it is not
/// visible to other users of the host.
pub const VARIABLE: &str = "PLIMSOLL_CATALOGUE";

/// Team's catalogue; set once per process.
static CLIENT: OnceLock<TeamClient> = OnceLock::new();

/// Sets the catalogue from the command line or the environment.
///
/// # Errors
/// The address is invalid.
pub fn configure(common: &Globals) -> Result<(), CliError> {
    let named = common.catalogue.clone().or_else(|| std::env::var(VARIABLE).ok());
    let Some(named) = named.filter(|named| !named.is_empty()) else { return Ok(()) };
    let failed = |says: String| {
        CliError::usage(format!("--catalogue: {says}"))
            .hint("use postgres://user@host/database; the password is read from PGPASSWORD")
    };
    let address: Address = named.parse().map_err(failed)?;
    if address.has_password() && common.catalogue.is_some() {
        return Err(failed("all users can see a password on the command line".to_owned()));
    }
    let places = Places::from_environment()?;
    // The client is set only once.
    let _ = CLIENT.set(TeamClient::new(address, &places.state, &places.cache));
    Ok(())
}

/// Returns the team's catalogue, if one is configured.
pub fn client() -> Option<&'static TeamClient> {
    CLIENT.get()
}
