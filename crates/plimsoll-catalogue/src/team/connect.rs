//! A connection to PostgreSQL, in the clear on this host and over TLS elsewhere.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, PATIENCE};
use super::line::Line;
use crate::error::CatalogueError;

/// Connects.
///
/// # Errors
/// A server that can't be reached, that is not who it says it is, or that refuses this user.
pub(super) fn connect(address: &Address) -> Result<Line, CatalogueError> {
    let failed = |says: String| CatalogueError::Team { shown: address.shown(), says };
    let config = &address.config;
    // One that takes the connection may say nothing to whoever is there.
    let patience = PATIENCE * u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
    let line = match config.get_ssl_mode() {
        SslMode::Disable => Line::open(patience, config.connect(NoTls)),
        _ => {
            let tls = MakeRustlsConnect::new(tls(address).map_err(failed)?);
            Line::open(patience, config.connect(tls))
        }
    };
    line.map_err(|error| failed(error.plain()))
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
