//! Resolved plan as text: stable TOML, its hash, and the reader.

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{RESOLVED_VERSION, ResolvedPlan};

/// Error when a resolved plan is written or read.
#[derive(Debug, Error)]
pub enum ResolvedError {
    /// The text is not a resolved plan.
    #[error("resolved plan is unreadable: {0}; the bundle is damaged or was edited")]
    Unreadable(String),
    /// A newer build wrote the plan.
    #[error(
        "resolved plan has version {found}, this build knows up to {RESOLVED_VERSION}; use the newer build"
    )]
    TooNew {
        /// Version in the text.
        found: u32,
    },
    /// A value does not fit into TOML, for example an integer above 2^63 - 1.
    #[error("resolved plan cannot be written as TOML: {0}; a field is out of range")]
    Unwritable(String),
}

impl ResolvedPlan {
    /// Returns the plan as TOML. The same plan always gives the same bytes.
    ///
    /// # Errors
    /// Code has set a field to a value that does not fit into TOML.
    pub fn to_toml(&self) -> Result<String, ResolvedError> {
        toml::to_string(self).map_err(|e| ResolvedError::Unwritable(e.to_string()))
    }

    /// Parses a text that [`Self::to_toml`] of this version or of an older one has written.
    ///
    /// # Errors
    /// The text is not a resolved plan, or a newer version wrote it.
    pub fn from_toml(text: &str) -> Result<Self, ResolvedError> {
        #[derive(serde::Deserialize)]
        struct Version {
            resolved_version: u32,
        }
        let unreadable = |e: toml::de::Error| ResolvedError::Unreadable(e.to_string());
        let Version { resolved_version: found } = toml::from_str(text).map_err(unreadable)?;
        if found > RESOLVED_VERSION {
            return Err(ResolvedError::TooNew { found });
        }
        toml::from_str(text).map_err(unreadable)
    }

    /// Returns the SHA-256 of [`Self::to_toml`] in lower-case hexadecimal.
    ///
    /// # Errors
    /// See [`Self::to_toml`].
    pub fn sha256_hex(&self) -> Result<String, ResolvedError> {
        let digest = Sha256::digest(self.to_toml()?.as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
