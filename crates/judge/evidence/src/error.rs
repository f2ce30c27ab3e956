//! Errors of bundles and the ledger.

use std::io;
use std::path::{Path, PathBuf};

/// An error during the reading or writing of evidence. It states the operation, the path and a
/// remedy.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A bundle file or the ledger could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// Operation that failed: `read`, `write`, `create`, `lock`…
        doing: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The format of a bundle file is not the format of the bundle's schema version.
    #[error("{} is not valid: {reason}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Description of the difference in format.
        reason: String,
    },
    /// A later version of Plimsoll wrote the bundle.
    #[error(
        "{} has schema version {found}, but this version of Plimsoll reads only up to {known}: use \
         the version that wrote the bundle, or a later version", path.display()
    )]
    TooNew {
        /// Directory of the bundle.
        path: PathBuf,
        /// Schema version of the bundle.
        found: u32,
        /// Latest schema version that this build can read.
        known: u32,
    },
    /// The directory is not a bundle.
    #[error("{} is not a bundle: it has no run.json", path.display())]
    NotABundle {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Sealed files do not match their seal.
    #[error("the seal of {} is broken: {what}", path.display())]
    SealBroken {
        /// Directory of the bundle.
        path: PathBuf,
        /// Names of the files that do not match the seal. Each entry also states the difference.
        what: String,
    },
    /// A key is invalid or cannot be read.
    #[error("the key {}: {reason}", path.display())]
    Key {
        /// File that contains the key.
        path: PathBuf,
        /// Reason why the key cannot be used.
        reason: String,
    },
    /// A signature does not match the signed file.
    #[error("the signature of {} is not valid: {reason}", path.display())]
    Signature {
        /// Path of the signed file.
        path: PathBuf,
        /// Reason why the signature is not valid.
        reason: String,
    },
    /// The hash chain of the ledger is broken.
    #[error("the ledger {} is broken{}: {what}", path.display(), at(*line))]
    LedgerBroken {
        /// Path of the ledger.
        path: PathBuf,
        /// Number of the broken line, counted from 1. The number is 0 if the ledger as a whole does
        /// not match its signed statement.
        line: u64,
        /// Description of the mismatch.
        what: String,
    },
}

fn at(line: u64) -> String {
    if line > 0 { format!(" at line {line}") } else { String::new() }
}

impl EvidenceError {
    /// Creates the error from an error of the operating system, the operation and the path.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }
}
