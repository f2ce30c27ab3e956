//! Connects to PostgreSQL. Connections to other hosts use TLS; connections to a server on this host
//! do not.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, CONNECT_TIMEOUT};
use super::connection::Connection;
use crate::error::CatalogueError;

/// Connects to the server.
///
/// # Errors
/// The server cannot be reached, has no valid certificate, or rejects this user.
pub(super) fn connect(address: &Address) -> Result<Connection, CatalogueError> {
    let failed =
        |reason: String| CatalogueError::Team { address: address.without_password(), reason };
    let config = &address.config;
    // A server that hangs accepts the connection but sends nothing. Therefore one timeout applies
    // to all hosts of the address together.
    let timeout =
        CONNECT_TIMEOUT * u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
    let connection = match config.get_ssl_mode() {
        SslMode::Disable => Connection::open(timeout, config.connect(NoTls)),
        _ => {
            let tls = MakeRustlsConnect::new(tls(address).map_err(failed)?);
            Connection::open(timeout, config.connect(tls))
        }
    };
    connection.map_err(|error| failed(error.message()))
}

fn tls(address: &Address) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match &address.authority {
        Some(path) => {
            let wrong = |reason: String| format!("{}: {reason}", path.display());
            let found =
                CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("the file contains no certificate".to_owned()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
