//! `nfs://` addresses of exports (RFC 2224). The names of the parameters are the same as in libnfs.

use thiserror::Error;

/// Address of an export: `nfs://HOST[:PORT]/EXPORT[?nfsport=N&mountport=N&uid=N&gid=N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NfsUrl {
    /// Host name or address.
    pub host: String,
    /// Path of the export as MOUNT requires it, with the leading slash.
    pub export: String,
    /// Port of the NFS service. If the address does not state it, the client requests it from the
    /// portmapper.
    pub nfs_port: Option<u16>,
    /// Port of the MOUNT service. If the address does not state it, the client requests it from the
    /// portmapper.
    pub mount_port: Option<u16>,
    /// User id in the credential. It is 0 if the address does not state it.
    pub uid: Option<u32>,
    /// Group id in the credential. It is 0 if the address does not state it.
    pub gid: Option<u32>,
}

/// Error in an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// The address does not start with `nfs://`.
    #[error("`{0}` does not start with nfs://")]
    Scheme(String),
    /// The address has no host.
    #[error("`{0}` has no host: use nfs://HOST/EXPORT")]
    Host(String),
    /// The address has no export.
    #[error("`{0}` has no export: use nfs://HOST/EXPORT")]
    Export(String),
    /// A parameter is unknown.
    #[error("`{name}` is not a parameter of an nfs:// address: use nfsport, mountport, uid or gid")]
    Parameter {
        /// The parameter.
        name: String,
    },
    /// The value of a parameter is not a number, or is out of range.
    #[error("`{value}` is not a valid value of {name}")]
    Number {
        /// The parameter.
        name: &'static str,
        /// Invalid value.
        value: String,
    },
}

impl NfsUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix("nfs://").ok_or_else(|| UrlError::Scheme(text.to_owned()))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = rest.find('/').ok_or_else(|| UrlError::Export(text.to_owned()))?;
        let (authority, export) = rest.split_at(slash);
        if export.len() < 2 {
            return Err(UrlError::Export(text.to_owned()));
        }
        let (host, port) = split_port(authority);
        if host.is_empty() {
            return Err(UrlError::Host(text.to_owned()));
        }
        let mut url = Self {
            host: host.to_owned(),
            export: export.to_owned(),
            nfs_port: port.map(|port| number("port", port)).transpose()?,
            mount_port: None,
            uid: None,
            gid: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "nfsport" => url.nfs_port = Some(number("nfsport", value)?),
                "mountport" => url.mount_port = Some(number("mountport", value)?),
                "uid" => url.uid = Some(number("uid", value)?),
                "gid" => url.gid = Some(number("gid", value)?),
                _ => return Err(UrlError::Parameter { name: name.to_owned() }),
            }
        }
        Ok(url)
    }
}

/// Splits the host and the port. An IPv6 address is in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(rest) = authority.strip_prefix('[')
        && let Some((host, rest)) = rest.split_once(']')
    {
        return (host, rest.strip_prefix(':'));
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

fn number<T: std::str::FromStr>(name: &'static str, value: &str) -> Result<T, UrlError> {
    value.parse().map_err(|_| UrlError::Number { name, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let url = NfsUrl::parse("nfs://10.0.0.5/export1").unwrap();
        assert_eq!((url.host.as_str(), url.export.as_str()), ("10.0.0.5", "/export1"));
        assert_eq!((url.nfs_port, url.mount_port), (None, None));
        let url = NfsUrl::parse("nfs://[::1]:2050/a/b?mountport=20048&uid=7&gid=8").unwrap();
        assert_eq!((url.host.as_str(), url.export.as_str()), ("::1", "/a/b"));
        assert_eq!((url.nfs_port, url.mount_port), (Some(2050), Some(20048)));
        assert_eq!((url.uid, url.gid), (Some(7), Some(8)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| NfsUrl::parse(text).unwrap_err().to_string();
        assert!(error("10.0.0.5:/x").contains("nfs://"));
        assert!(error("nfs://host").contains("no export"));
        assert!(error("nfs://host/").contains("no export"));
        assert!(error("nfs:///x").contains("no host"));
        assert!(error("nfs://h/x?version=4").contains("`version`"));
        assert!(
            error("nfs://h/x?nfsport=99999").contains("`99999` is not a valid value of nfsport")
        );
        assert!(error("nfs://h:x/y").contains("`x` is not a valid value of port"));
    }
}
