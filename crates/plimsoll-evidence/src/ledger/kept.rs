//! A ledger that is read again and again, by a server: lines that were checked are not parsed and hashed anew.
//!
//! The file is read whole each time, and its beginning is held against the bytes that were checked, all of
//! them. Only what comes after is parsed, and its chain goes on from theirs. So nothing is taken for true on
//! account of a length or a time: a ledger that was changed anywhere, cut short or replaced is read from its
//! first line, as [`Ledger::read_chain`] does, and says the same.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Ledger, Link, TornTail, tail};
use crate::EvidenceError;

/// A ledger, and what was read of it.
#[derive(Debug)]
pub struct Kept {
    ledger: Ledger,
    known: Mutex<Known>,
}

/// Lines that were checked.
#[derive(Debug, Default)]
struct Known {
    /// Their bytes: none, or whole lines with the line feed of the last.
    lines: Vec<u8>,
    links: Arc<Vec<Link>>,
}

/// A ledger's lines, and whether a further one is torn.
pub type Chain = (Arc<Vec<Link>>, Option<TornTail>);

impl Kept {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, known: Mutex::default() }
    }

    /// Where the ledger lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.ledger.path()
    }

    /// Reads the ledger as [`Ledger::read_chain`] does, with whether its last line is torn.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn read(&self) -> Result<Chain, EvidenceError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What is not let pass below is not known any more.
        let Known { lines: checked, mut links } = std::mem::take(&mut *known);
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
        let torn = TornTail::left(&links, torn);
        // A last line without its line feed may go on: it is read again.
        if lines.ends_with(b"\n") {
            let whole = lines.len();
            bytes.truncate(whole);
            *known = Known { lines: bytes, links: Arc::clone(&links) };
        }
        Ok((links, torn))
    }
}

#[cfg(test)]
mod tests;
