//! Certificate of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Error in a certificate or in its key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read or is not PEM.
    #[error("cannot read {path}: {message}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason.
        message: String,
    },
    /// The certificate and the key cannot be used, for example because they do not match.
    #[error("{certificate} with {key}: {message}")]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Reason.
        message: String,
    },
}

/// A certificate and its private key.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads a certificate, the intermediate certificates that follow it, and its key. All must be
    /// in PEM format.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let unreadable = |path: &Path, holds_none: &str| {
            let (path, none) = (path.to_path_buf(), format!("the file contains no {holds_none}"));
            move |error| {
                let message =
                    if matches!(error, Error::NoItemsFound) { none } else { error.to_string() };
                TlsError::Unreadable { path, message }
            }
        };
        let no_certificate = || unreadable(certificate, "certificate");
        let chain = CertificateDer::pem_file_iter(certificate).map_err(no_certificate())?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(no_certificate())?;
        if chain.is_empty() {
            return Err(no_certificate()(Error::NoItemsFound));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key, "private key"))?;
        let unusable = |error: rustls::Error| TlsError::Unusable {
            certificate: certificate.to_path_buf(),
            key: key.to_path_buf(),
            message: error.to_string(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    /// Acceptor for TLS handshakes.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
