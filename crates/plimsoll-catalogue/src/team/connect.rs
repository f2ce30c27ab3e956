//! A connection to PostgreSQL, in the clear on this host and over TLS elsewhere.

use std::sync::Arc;

use postgres::config::SslMode;
use postgres::{Client, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use crate::error::CatalogueError;

/// Connects.
///
/// # Errors
/// A server that can't be reached, that is not who it says it is, or that refuses this user.
pub(super) fn connect(address: &Address) -> Result<Client, CatalogueError> {
    let failed = |says: String| CatalogueError::Team { shown: address.shown(), says };
    let client = match address.config.get_ssl_mode() {
        SslMode::Disable => address.config.connect(NoTls),
        _ => address.config.connect(MakeRustlsConnect::new(tls(address).map_err(failed)?)),
    };
    client.map_err(|error| failed(plain(&error)))
}

fn tls(address: &Address) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match &address.authority {
        Some(path) => {
            let wrong = |says: String| format!("{}: {says}", path.display());
            let found =
                CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it holds no certificate".to_owned()));
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

/// What the server or the system said, in one sentence.
pub(super) fn plain(error: &postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
}
