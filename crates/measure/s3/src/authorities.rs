//! Certificate authorities with which the certificate of a store is verified.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::TargetError;

/// Environment variable that the AWS CLI also uses. It contains the path of a file with certificate
/// authorities.
pub(crate) fn bundle() -> Option<PathBuf> {
    std::env::var_os("AWS_CA_BUNDLE").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Builds the TLS configuration with the authorities in a file. Without a file, uses the
/// authorities of the host.
pub(crate) fn config(
    endpoint: &str,
    file: Option<&Path>,
) -> Result<Arc<ClientConfig>, TargetError> {
    let wrong = |says: String| TargetError::Authorities { endpoint: endpoint.to_owned(), says };
    let roots = file.map_or_else(from_host, from_file).map_err(wrong)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn from_file(file: &Path) -> Result<RootCertStore, String> {
    let unread = |error| format!("{}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(unread)? {
        let certificate = certificate.map_err(unread)?;
        roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    match roots.is_empty() {
        true => Err(format!("{} contains no certificate", file.display())),
        false => Ok(roots),
    }
}

fn from_host() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Authorities of a host that cannot be parsed are ignored. One readable authority is enough to
    // start.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(format!(
            "this host has no CA certificates{why}: install ca-certificates, or set AWS_CA_BUNDLE \
             to a certificate file"
        ));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_none_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        assert!(from_file(&file).unwrap_err().contains("ca.pem"));
        std::fs::write(&file, "nothing").unwrap();
        assert!(from_file(&file).unwrap_err().contains("contains no certificate"));
    }
}
