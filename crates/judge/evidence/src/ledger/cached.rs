//! A cached ledger, for servers that read the ledger repeatedly. Lines that were already checked
//! are not parsed and hashed again.
//!
//! Each read loads the whole file and compares its beginning with the bytes that were checked
//! before. Only the bytes after this beginning are parsed, as a continuation of the chain. The
//! cache does not rely on the file's length or timestamps. If the file was changed, truncated or
//! replaced, all lines are parsed again. The result is always the same as that of
//! [`Ledger::read_chain`].

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Ledger, Link, TornTail, tail};
use crate::EvidenceError;

/// A ledger with a cache of the lines that were already checked.
#[derive(Debug)]
pub struct CachedLedger {
    ledger: Ledger,
    known: Mutex<CheckedLines>,
}

/// Checked lines.
#[derive(Debug, Default)]
struct CheckedLines {
    /// Bytes of the lines that were already checked, including the last line feed.
    lines: Vec<u8>,
    links: Arc<Vec<Link>>,
}

/// The lines of a ledger. If the last line is torn, it is stored separately.
pub type Chain = (Arc<Vec<Link>>, Option<TornTail>);

impl CachedLedger {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, known: Mutex::default() }
    }

    /// Path of the ledger.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.ledger.path()
    }

    /// Reads the ledger as [`Ledger::read_chain`] does. If the last line is torn, also returns this
    /// line.
    ///
    /// # Errors
    /// See [`Ledger::read`].
    pub fn read(&self) -> Result<Chain, EvidenceError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The cache is emptied before the ledger is read, so it remains empty if an error occurs.
        let CheckedLines { lines: checked, mut links } = std::mem::take(&mut *known);
        let (mut bytes, head) = self.ledger.read_bytes()?;
        let (lines, torn) = tail::split(&bytes);
        let after = lines.strip_prefix(&checked[..]);
        if after.is_none() {
            links = Arc::default();
        }
        let after = after.unwrap_or(lines);
        if !after.is_empty() {
            self.ledger.parse_after(Arc::make_mut(&mut links), after)?;
        }
        self.ledger.hold(&head, &links)?;
        let torn = TornTail::after(&links, torn);
        // A last line without a line feed may still grow, so it is not cached.
        if lines.ends_with(b"\n") {
            let whole = lines.len();
            bytes.truncate(whole);
            *known = CheckedLines { lines: bytes, links: Arc::clone(&links) };
        }
        Ok((links, torn))
    }
}

#[cfg(test)]
mod tests;
