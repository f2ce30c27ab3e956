//! The certificate authority of a fleet. Its key can create certificates for hosts and servers, and
//! the fleet trusts these certificates.

use std::fs;
use std::path::Path;

use plimsoll_runner::error::RunnerError;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use crate::files::write;

/// Last year in which certificates are valid. The fleet must be set up again before this year ends.
const VALID_TO_YEAR: i32 = 2036;
/// Name of the file with the authority's certificate, in the directories of the authority and of
/// the server.
pub(crate) const CERTIFICATE: &str = "ca.pem";
/// Name of the file with the authority's key, in a directory that is not copied to any host.
const KEY: &str = "ca.key";

pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, RunnerError> {
        let key = KeyPair::generate().map_err(certificate_error)?;
        let params = authority_params()?;
        let pem = params.self_signed(&key).map_err(certificate_error)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// Writes the certificate and the key into a directory.
    pub(crate) fn save(&self, directory: &Path) -> Result<(), RunnerError> {
        write(&directory.join(CERTIFICATE), &self.pem, 0o644)?;
        write(&directory.join(KEY), &self.issuer.key().serialize_pem(), 0o600)
    }

    /// Reads the authority from `directory`. Checks that it signed the certificates in `of`, the
    /// fleet's directory.
    pub(crate) fn read(directory: &Path, of: &Path) -> Result<Self, RunnerError> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| {
                RunnerError::usage(format!(
                    "cannot read the fleet's certificate authority {}: {error}",
                    path.display()
                ))
            })
        };
        let hint = |error: RunnerError| {
            error.hint(
                "pass the authority's directory with --authority; if its key was discarded, set the \
                 fleet up again with `plimsoll fleet init`, and copy the new files to all hosts",
            )
        };
        let (path, certificate) = (directory.join(KEY), directory.join(CERTIFICATE));
        let (text, pem) = (read(&path).map_err(hint)?, read(&certificate).map_err(hint)?);
        if pem != read(&of.join(CERTIFICATE))? {
            let message = format!(
                "{} is the certificate authority of another fleet, not of {}",
                directory.display(),
                of.display()
            );
            return Err(hint(RunnerError::usage(message)));
        }
        let key = KeyPair::from_pem(&text).map_err(|error| {
            RunnerError::usage(format!("cannot read the key {}: {error}", path.display()))
        })?;
        Ok(Self { pem, issuer: Issuer::new(authority_params()?, key) })
    }

    /// The authority's certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate, and returns it with its key.
    pub(crate) fn issue(
        &self,
        name: &str,
        is_server: bool,
    ) -> Result<(String, String), RunnerError> {
        let names = if is_server { vec![name.to_owned()] } else { Vec::new() };
        let mut params = certificate_params(name, names)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match is_server {
            true => ExtendedKeyUsagePurpose::ServerAuth,
            false => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let key = KeyPair::generate().map_err(certificate_error)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(certificate_error)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// Returns the parameters that are the same for all authorities. Certificates identify their issuer
/// by these parameters and by the hash of its key.
fn authority_params() -> Result<CertificateParams, RunnerError> {
    let mut params = certificate_params("Plimsoll fleet", Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn certificate_params(name: &str, names: Vec<String>) -> Result<CertificateParams, RunnerError> {
    let mut params = CertificateParams::new(names).map_err(certificate_error)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    // The start date is in the past, because the clocks of hosts may be slow.
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(VALID_TO_YEAR, 12, 31);
    Ok(params)
}

fn certificate_error(error: rcgen::Error) -> RunnerError {
    RunnerError::environment(format!("cannot create a certificate: {error}"))
}
