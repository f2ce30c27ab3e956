//! The resolved plan as text: stable TOML, its hash, and the way back.

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{RESOLVED_VERSION, ResolvedPlan};

/// Why a resolved plan can't be written or read.
#[derive(Debug, Error)]
pub enum ResolvedError {
    /// The text is not a resolved plan.
    #[error("resolved plan is unreadable: {0}; the bundle is damaged or was edited")]
    Unreadable(String),
    /// It comes from a newer build.
    #[error(
        "resolved plan has version {found}, this build knows up to {RESOLVED_VERSION}; use the newer build"
    )]
    TooNew {
        /// The version in the text.
        found: u32,
    },
    /// A value that TOML can't hold, such as an integer above 2^63 - 1.
    #[error("resolved plan can't be written as TOML: {0}; a field is out of range")]
    Unwritable(String),
}

impl ResolvedPlan {
    /// The plan as TOML; the same plan always gives the same bytes.
    ///
    /// # Errors
    /// When a field was set by hand to a value that TOML can't hold.
    pub fn to_toml(&self) -> Result<String, ResolvedError> {
        toml::to_string(self).map_err(|e| ResolvedError::Unwritable(e.to_string()))
    }

    /// Reads back what [`Self::to_toml`] of this or an older version wrote.
    ///
    /// # Errors
    /// When the text is not a resolved plan, or a newer version's.
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

    /// SHA-256 of [`Self::to_toml`] in lower-case hexadecimal.
    ///
    /// # Errors
    /// As [`Self::to_toml`].
    pub fn sha256_hex(&self) -> Result<String, ResolvedError> {
        let digest = Sha256::digest(self.to_toml()?.as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
