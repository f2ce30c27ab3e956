//! Address of a team's catalogue: `postgres://user@host/database`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Parameter with the name of the certificate authority's file, as in libpq.
const AUTHORITY: &str = "sslrootcert";

/// Address of a PostgreSQL database. Its password is never displayed.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    /// File with the certificate authorities to use instead of the host's certificate authorities.
    pub(super) authority: Option<PathBuf>,
    display: String,
    /// True if the address contains the password.
    has_password: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.display).finish()
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        if !scheme {
            return Err(
                "not a PostgreSQL address: expected postgres://user@host/database".to_owned()
            );
        }
        let (text, authority) = split_authority(text)?;
        // The error must not quote the address, which may contain a password.
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        if config.get_hosts().is_empty() {
            return Err("the address has no host".to_owned());
        }
        if config.get_user().is_none() {
            let user = std::env::var("PGUSER").or_else(|_| std::env::var("USER"));
            config.user(&user.map_err(|_| "the address has no user".to_owned())?);
        }
        let has_password = config.get_password().is_some();
        if !has_password && let Ok(password) = std::env::var("PGPASSWORD") {
            config.password(password);
        }
        config.connect_timeout(CONNECT_TIMEOUT).application_name("plimsoll");
        // Connections to all other hosts use TLS, unless the address disables it. Without TLS,
        // evidence and passwords would be readable on the network.
        let is_near = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost"
                    || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        });
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(if is_near { SslMode::Disable } else { SslMode::Require });
        }
        let display = display(&config);
        Ok(Self { config, authority, display, has_password })
    }
}

impl Address {
    /// Returns true if the address contains the password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.has_password
    }

    /// Returns the address without the password, for messages.
    pub fn without_password(&self) -> String {
        self.display.clone()
    }
}

/// Removes `sslrootcert` from the query, since the client library does not support it.
fn split_authority(text: &str) -> Result<(String, Option<PathBuf>), String> {
    let Some((front, query)) = text.split_once('?') else { return Ok((text.to_owned(), None)) };
    let mut authority = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((AUTHORITY, path)) if path.contains('%') => {
                return Err(format!("{AUTHORITY}: the path must not contain %"));
            }
            Some((AUTHORITY, path)) => authority = Some(PathBuf::from(path)),
            _ => kept.push(pair),
        }
    }
    let query = kept.join("&");
    Ok((if query.is_empty() { front.to_owned() } else { format!("{front}?{query}") }, authority))
}

fn display(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(|port| format!(":{port}")).collect();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    format!("postgres://{user}@{}{}/{database}", hosts.join(","), ports.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_password_is_used_and_never_displayed() {
        let address: Address = "postgres://ann:s3cret@db.example:5433/storage".parse().unwrap();
        assert_eq!(address.without_password(), "postgres://ann@db.example:5433/storage");
        assert_eq!(address.config.get_password(), Some(&b"s3cret"[..]));
        assert!(address.has_password());
        assert!(!"postgres://ann@db/x".parse::<Address>().unwrap().has_password());
        assert!(!format!("{address:?}").contains("s3cret"));
        for wrong in ["postgres://ann:s3cret@db/x?what=1", "postgres://ann:s3cret@db:port/x"] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!("mysql://db/x".parse::<Address>().unwrap_err().contains("postgres://user@host"));
        assert!("postgres:///x".parse::<Address>().is_err(), "no host");
    }

    #[test]
    fn other_hosts_require_tls() {
        let mode = |text: &str| text.parse::<Address>().unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://a@db.example/x"), SslMode::Require);
        assert_eq!(mode("postgres://a@127.0.0.1/x"), SslMode::Disable);
        assert_eq!(mode("postgres://a@%2Frun%2Fpostgresql/x"), SslMode::Disable);
        assert_eq!(mode("postgres://a@db.example/x?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://a@127.0.0.1/x?sslmode=require"), SslMode::Require);
        let own: Address =
            "postgres://a@db/x?sslrootcert=/etc/ca.pem&sslmode=require".parse().unwrap();
        assert_eq!(own.authority, Some(PathBuf::from("/etc/ca.pem")));
    }
}
