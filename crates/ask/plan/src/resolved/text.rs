//! Converts a resolved plan to TOML and back. The same plan always results in the same TOML, so
//! that the TOML can be hashed.

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{RESOLVED_VERSION, ResolvedPlan};

/// An error in writing or reading a resolved plan.
#[derive(Debug, Error)]
pub enum ResolvedError {
    /// The text is not a resolved plan.
    #[error("the resolved plan is unreadable: {0}; the bundle is damaged or was edited")]
    Unreadable(String),
    /// A newer build wrote the plan.
    #[error(
        "the resolved plan has version {found}, but this build supports versions up to \
         {RESOLVED_VERSION}; use a newer build"
    )]
    TooNew {
        /// Version that the text of the plan states.
        found: u32,
    },
    /// A value does not fit into TOML, for example an integer above 2^63 - 1.
    #[error("the resolved plan cannot be written as TOML: {0}; a field is out of range")]
    Unwritable(String),
}

impl ResolvedPlan {
    /// Returns the plan as TOML. The same plan always results in the same text, byte for byte.
    ///
    /// # Errors
    /// A field has a value that does not fit into TOML. Code can set such a value, but a plan file
    /// cannot.
    pub fn to_toml(&self) -> Result<String, ResolvedError> {
        toml::to_string(self).map_err(|e| ResolvedError::Unwritable(e.to_string()))
    }

    /// Parses a text that [`Self::to_toml`] of this version or of an older version has written.
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

    /// Returns the SHA-256 of the text that [`Self::to_toml`] returns, in lower-case hexadecimal.
    ///
    /// # Errors
    /// See [`Self::to_toml`].
    pub fn sha256_hex(&self) -> Result<String, ResolvedError> {
        let digest = Sha256::digest(self.to_toml()?.as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
