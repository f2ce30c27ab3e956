//! The file that `plimsoll fleet init` writes for a host. It contains the address of the fleet's
//! server and the host's credentials.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_runner::error::RunnerError;
use plimsoll_runner::private_file;
use serde::{Deserialize, Serialize};

use crate::broker::Server;
use crate::credential::Credential;

/// Contents of an agent's file or of `fleet.toml`. Relative file names in it refer to the directory
/// that contains this file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Address of the server.
    pub server: String,
    /// Name of the agent; `None` for the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of an nkey, or the file that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nkey: Option<Credential>,
    /// File with credentials, instead of an nkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds: Option<PathBuf>,
    /// Certificate authorities of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<Credential>,
    /// This host's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<Credential>,
    /// Private key of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<Credential>,
    /// Labels by which plans can select the agent, such as `rack=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Public keys. The agent accepts plans that are signed with one of these keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<String>,
    /// Directories that plans may use, as with `--allow-path`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_paths: Vec<PathBuf>,
    /// Names of the fleet's hosts. A run with `fleet.toml` requires all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// File with the key for signing plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<PathBuf>,
}

impl Access {
    /// Parses the text of the file.
    ///
    /// # Errors
    /// The text has another format. The error does not quote the text, which may contain a key.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(String::new(), |before| {
                format!("line {}: ", before.matches('\n').count() + 1)
            });
            format!("{line}{}", error.message())
        })
    }

    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, has another format, or contains keys that other users can read.
    pub fn read(path: &Path) -> Result<Self, RunnerError> {
        let wrong = |error: &dyn std::fmt::Display| {
            RunnerError::usage(format!("cannot read {}: {error}", path.display()))
                .hint("create it with `plimsoll fleet init`")
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut access = Self::parse(&text).map_err(|error| wrong(&error))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let secrets = [&access.nkey, &access.tls_key];
        if secrets.into_iter().flatten().any(Credential::is_text) {
            private_file::check(path)?;
        }
        let credentials =
            [&mut access.nkey, &mut access.tls_ca, &mut access.tls_cert, &mut access.tls_key];
        credentials.into_iter().flatten().for_each(|one| one.beside(beside));
        for file in [&mut access.creds, &mut access.sign].into_iter().flatten() {
            *file = beside.join(&file);
        }
        Ok(access)
    }

    /// Returns the address and credentials of the server.
    ///
    /// # Errors
    /// There is a certificate without its key, or a key without its certificate.
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
            hosts: self.hosts.clone(),
            without: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn file_names_are_relative_and_unknown_fields_are_rejected() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("agent.toml");
        fs::write(
            &path,
            "server = \"tls://a\"\nname = \"n\"\nnkey = \"user.nk\"\ntls_ca = \"/etc/ca.pem\"\n",
        )
        .unwrap();
        let access = Access::read(&path).unwrap();
        assert_eq!(access.nkey, Some(Credential::file(&root.path().join("user.nk"))));
        assert_eq!(access.tls_ca, Some(Credential::file(Path::new("/etc/ca.pem"))));
        assert_eq!(access.to_server().unwrap().url, "tls://a");
        let one = Access { tls_cert: Some(Credential::file(Path::new("c"))), ..access };
        assert!(one.to_server().unwrap_err().to_string().contains("together"));
        fs::write(&path, "server = \"a\"\nuser = \"x\"\n").unwrap();
        let error = Access::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2: unknown field `user`"), "{error}");
        fs::write(&path, "server = \"a\"\nnkey = \"SUSECRET\nname = \"n\"\n").unwrap();
        let error = Access::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("SECRET"), "{error}");
    }
}
