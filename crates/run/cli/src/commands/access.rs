//! Access to a fleet's server: its address, or the file that `plimsoll fleet init` created.

use std::path::Path;

use plimsoll_fleet::access::Access;
use plimsoll_fleet::broker::Server;

use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;

/// Returns a fleet's server from an address or a `fleet.toml`, and Plimsoll's directories with the
/// signing key. Only a `fleet.toml` contains credentials.
///
/// # Errors
/// The file or the key cannot be read.
pub fn reached(named: &str, sign: &Sign) -> Result<(Server, Places), CliError> {
    if !named.ends_with(".toml") {
        let server = Server { url: named.to_owned(), ..Server::default() };
        return Ok((server, keys::places(sign)?));
    }
    let file = Access::read(Path::new(named))?;
    let key = sign.key.clone().or_else(|| file.sign.clone());
    Ok((file.to_server()?, keys::places(&Sign { key })?))
}
