//! Errors of the catalogue.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// The verb of the failed operation, such as "read".
        action: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    /// The index is not usable and could not be rebuilt.
    #[error("cannot use the catalogue index {}: {reason}", path.display())]
    Index { path: PathBuf, reason: String },
    /// The team's catalogue could not be used.
    #[error("the team's catalogue {address}: {reason}")]
    Team {
        /// Address without the password.
        address: String,
        reason: String,
    },
    /// The ledger or a bundle could not be read.
    #[error(transparent)]
    Evidence(#[from] plimsoll_evidence::EvidenceError),
    /// The name matches several runs, or no run. The text is a complete message.
    #[error("{0}")]
    Name(String),
    /// The archive was not written by `runs export`.
    #[error("cannot import {}: {reason}", path.display())]
    Archive { path: PathBuf, reason: String },
}

impl CatalogueError {
    pub(crate) fn io(action: &'static str, path: &Path, error: std::io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), error }
    }
}
