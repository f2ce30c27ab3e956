//! A file that says how one host reaches the fleet's server, and as whom: what `plimsoll fleet init` writes for each.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_runner::error::RunnerError;
use serde::{Deserialize, Serialize};

use crate::broker::Server;

/// `agent.toml` or `fleet.toml`. Files that it names lie beside it, or are named in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The server.
    pub server: String,
    /// The agent's name; `None` where plans are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The seed of an nkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nkey: Option<PathBuf>,
    /// Credentials, in place of an nkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds: Option<PathBuf>,
    /// Authorities of the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// This host's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The key of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Words that plans may choose the agent by, such as `rack=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Public keys that an agent takes plans of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<String>,
    /// The key that plans are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<PathBuf>,
}

impl Access {
    /// Reads one.
    ///
    /// # Errors
    /// A file that can't be read, or that says something else.
    pub fn read(path: &Path) -> Result<Self, RunnerError> {
        let wrong = |error: &dyn std::fmt::Display| {
            RunnerError::usage(format!("cannot read {}: {error}", path.display()))
                .hint("create it with `plimsoll fleet init`")
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut access: Self = toml::from_str(&text).map_err(|error| wrong(&error))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let files = [
            &mut access.nkey,
            &mut access.creds,
            &mut access.tls_ca,
            &mut access.tls_cert,
            &mut access.tls_key,
            &mut access.sign,
        ];
        for file in files.into_iter().flatten() {
            *file = beside.join(&file);
        }
        Ok(access)
    }

    /// The server that it names.
    ///
    /// # Errors
    /// A certificate without its key.
    pub fn to_server(&self) -> Result<Server, RunnerError> {
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(RunnerError::usage("a certificate and its key must be set together")
                .hint("set both tls_cert and tls_key"));
        }
        Ok(Server {
            url: self.server.clone(),
            credentials: self.creds.clone(),
            nkey: self.nkey.clone(),
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone().zip(self.tls_key.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_lie_beside_it_and_what_it_does_not_know_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("agent.toml");
        fs::write(
            &path,
            "server = \"tls://a\"\nname = \"n\"\nnkey = \"user.nk\"\ntls_ca = \"/etc/ca.pem\"\n",
        )
        .unwrap();
        let access = Access::read(&path).unwrap();
        assert_eq!(access.nkey, Some(root.path().join("user.nk")));
        assert_eq!(access.tls_ca, Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(access.to_server().unwrap().url, "tls://a");
        let one = Access { tls_cert: Some("c".into()), ..access };
        assert!(one.to_server().unwrap_err().to_string().contains("together"));
        fs::write(&path, "server = \"a\"\nuser = \"x\"\n").unwrap();
        assert!(Access::read(&path).unwrap_err().to_string().contains("user"));
    }
}
