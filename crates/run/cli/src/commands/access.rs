//! Options for connecting to a fleet's server, or the file that `plimsoll fleet init` wrote.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fleet::access::Access as FleetAccess;
use plimsoll_fleet::broker::Server;

use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;

/// Options for connecting to the NATS server.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub struct Access {
    /// Credentials for the NATS server, as `nsc` writes them.
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// Seed of an nkey for the NATS server.
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    nkey: Option<PathBuf>,
    /// Certificate authorities for the NATS server, in addition to this host's.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// This host's certificate for the NATS server.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of this host's certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Access {
    /// Returns the server with these options.
    pub fn server(&self, url: &str) -> Server {
        Server {
            url: url.to_owned(),
            credentials: self.creds.clone(),
            nkey: self.nkey.clone(),
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone().zip(self.tls_key.clone()),
            ..Server::default()
        }
    }
}

/// Returns a fleet's server from an address or a `fleet.toml`, and Plimsoll's directories with the
/// signing key.
///
/// # Errors
/// An unreadable file or key.
pub fn reached(named: &str, access: &Access, sign: &Sign) -> Result<(Server, Places), CliError> {
    if !named.ends_with(".toml") {
        return Ok((access.server(named), keys::places(sign)?));
    }
    let file = FleetAccess::read(Path::new(named))?;
    let key = sign.key.clone().or_else(|| file.sign.clone());
    Ok((file.to_server()?, keys::places(&Sign { key })?))
}
