//! What can go wrong.

use std::path::{Path, PathBuf};

/// An error of the catalogue.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The index could not be used, and could not be made anew.
    #[error("cannot use the catalogue index {}: {reason}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The team's catalogue.
    #[error("the team's catalogue {address}: {reason}")]
    Team {
        /// Its address, without a password.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// The ledger or a bundle.
    #[error(transparent)]
    Evidence(#[from] plimsoll_evidence::EvidenceError),
    /// Nothing of this name, or several.
    #[error("{0}")]
    Name(String),
    /// An archive that is not what `runs export` writes.
    #[error("cannot import {}: {reason}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl CatalogueError {
    /// An error of the file system.
    pub(crate) fn io(action: &'static str, path: &Path, error: std::io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), error }
    }
}
