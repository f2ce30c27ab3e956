//! Address and credentials of a store.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use rustls::pki_types::ServerName;
use rusty_s3::{Bucket, Credentials, UrlStyle};

use crate::authorities;
use crate::error::TargetError;
use crate::wire::Tls;

/// A bucket with its address and credentials.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) bucket: Bucket,
    /// Credentials that sign the requests.
    pub(crate) credentials: Credentials,
    /// Address of the store.
    pub address: SocketAddr,
    /// Value of the `Host` header.
    pub(crate) host: String,
    /// TLS configuration of an `https` endpoint.
    pub(crate) tls: Option<Tls>,
    /// Prefix of every key; ends with `/` unless it is empty.
    pub prefix: String,
}

impl Target {
    /// Creates the target for the bucket `s3://bucket/prefix` of the store at `endpoint`
    /// (`https://host:port` or `http`). The credentials are read from the environment
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`). The certificate of an
    /// `https` store is verified with the authorities in the file `AWS_CA_BUNDLE`. If this variable
    /// is not set, the authorities of this host are used (`SSL_CERT_FILE`, `SSL_CERT_DIR`, or the
    /// system's directories).
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn from_environment(url: &str, endpoint: &str, region: &str) -> Result<Self, TargetError> {
        let credentials = Credentials::from_env().ok_or(TargetError::Credentials)?;
        Self::new(url, endpoint, region, credentials)
    }

    /// Like [`Target::from_environment`], with an access key and its secret.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn with_key(
        url: &str,
        endpoint: &str,
        region: &str,
        (key, secret): (&str, &str),
    ) -> Result<Self, TargetError> {
        Self::new(url, endpoint, region, Credentials::new(key, secret))
    }

    /// Makes the client trust only the authorities in a PEM file. Has no effect if the store uses
    /// `http`.
    ///
    /// # Errors
    /// [`TargetError::Authorities`].
    pub fn trusting(mut self, file: &Path) -> Result<Self, TargetError> {
        if let Some(tls) = &mut self.tls {
            tls.config = authorities::config(self.bucket.base_url().as_str(), Some(file))?;
        }
        Ok(self)
    }

    fn new(
        url: &str,
        endpoint: &str,
        region: &str,
        credentials: Credentials,
    ) -> Result<Self, TargetError> {
        let rest = url.strip_prefix("s3://").ok_or_else(|| TargetError::Bucket(url.to_owned()))?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() {
            return Err(TargetError::Bucket(url.to_owned()));
        }
        let bad = || TargetError::Endpoint(endpoint.to_owned());
        let parsed = endpoint.parse().map_err(|_| bad())?;
        let bucket = Bucket::new(parsed, UrlStyle::Path, name.to_owned(), region.to_owned())
            .map_err(|_| bad())?;
        let base = bucket.base_url();
        let (host, port) = (base.host_str().ok_or_else(bad)?, base.port_or_known_default());
        let port = port.ok_or_else(bad)?;
        let unknown = |says: String| TargetError::Host { endpoint: endpoint.to_owned(), says };
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let mut found =
            (plain, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let address =
            found.next().ok_or_else(|| unknown("the host name has no address".to_owned()))?;
        let tls = match base.scheme() {
            "https" => {
                let name = ServerName::try_from(plain.to_owned()).map_err(|_| bad())?;
                Some(Tls {
                    name,
                    config: authorities::config(endpoint, authorities::bundle().as_deref())?,
                })
            }
            _ => None,
        };
        let host = match base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let mut prefix = prefix.trim_matches('/').to_owned();
        if !prefix.is_empty() {
            prefix.push('/');
        }
        Ok(Self { bucket, credentials, address, host, tls, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (&str, &str) = ("key", "secret");

    #[test]
    fn targets_are_read() {
        let target = Target::with_key("s3://b/p/q/", "http://127.0.0.1:9000", "x", KEY).unwrap();
        assert_eq!(target.address.port(), 9000);
        assert_eq!(target.prefix, "p/q/");
        assert_eq!(target.host, "127.0.0.1:9000");
        let target = Target::with_key("s3://b", "http://[::1]", "x", KEY).unwrap();
        assert_eq!((target.address.port(), target.prefix.as_str()), (80, ""));
        assert!(target.tls.is_none());
        let target = Target::with_key("s3://b", "https://127.0.0.1", "x", KEY).unwrap();
        assert_eq!(target.address.port(), 443);
        assert!(target.tls.is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |url, endpoint| Target::with_key(url, endpoint, "x", KEY).unwrap_err();
        assert!(matches!(wrong("b", "http://h"), TargetError::Bucket(_)));
        assert!(matches!(wrong("s3:///p", "http://h"), TargetError::Bucket(_)));
        assert!(matches!(wrong("s3://b", "ftp://h"), TargetError::Endpoint(_)));
    }
}
