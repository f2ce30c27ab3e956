//! What can go wrong with a bundle or the ledger.

use std::io;
use std::path::{Path, PathBuf};

/// An error of reading or writing evidence: what happened, to what, what to do.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A file of the bundle, or the ledger, could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `create`, `lock`…
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of the bundle does not have the form that its schema version promises.
    #[error("{} is not valid: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bundle was written by a later version of Plimsoll.
    #[error(
        "{} has schema version {found}, and this Plimsoll reads up to {known}: \
         use the version that wrote it, or a later one", path.display()
    )]
    TooNew {
        /// The bundle.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// The directory is no bundle.
    #[error("{} is not a bundle: it has no run.json", path.display())]
    NotABundle {
        /// The directory.
        path: PathBuf,
    },
    /// Sealed files differ from their seal.
    #[error("the seal of {} is broken: {what}", path.display())]
    SealBroken {
        /// The bundle.
        path: PathBuf,
        /// Which files, and how.
        what: String,
    },
    /// A key can't be used.
    #[error("the key {}: {reason}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A signature is not that of what it lies beside.
    #[error("the signature of {} does not hold: {reason}", path.display())]
    Signature {
        /// What was signed.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The chain of the ledger does not hold.
    #[error("the ledger {} is broken{}: {what}", path.display(), at(*line))]
    LedgerBroken {
        /// The ledger.
        path: PathBuf,
        /// Line number, from 1; 0 where it is the whole that is not what was signed.
        line: u64,
        /// What does not fit.
        what: String,
    },
}

fn at(line: u64) -> String {
    if line > 0 { format!(" at line {line}") } else { String::new() }
}

impl EvidenceError {
    /// Wraps a system error with what was being done to which path.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    /// The system's error number, where there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
